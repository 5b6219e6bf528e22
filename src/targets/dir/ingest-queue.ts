/** Entries that wait to be read, given out in batches that fit a buffer. */
import type { Raw } from '../../model/raw-path.ts'
import { type ReadResult, WHOLE_FILE_BYTES } from './ingest-read.ts'

const BATCH_ENTRIES = 256
const BATCH_BYTES = 1536 * 1024
/** Entries that were given out are dropped from the front in steps of this size. */
const TRIM = 4096

export interface Job {
  readonly path: Raw
  /** As the walk saw it; more when it turned out to be large. */
  size: number
  /** Counts in what is said of progress, where directories, which have only attributes to read, do not. */
  readonly isCounted: boolean
  /** `result` may be used until this returns. */
  done(result: ReadResult): void
}

export const isLarge = (jobs: readonly Job[]): boolean => jobs[0]!.size > WHOLE_FILE_BYTES
export const totalBytes = (jobs: readonly Job[]): number => jobs.reduce((sum, job) => sum + job.size, 0)
export const pathList = (jobs: readonly Job[]): Buffer => Buffer.from(jobs.map(job => job.path).join('\0'), 'latin1')

export class IngestQueue {
  private jobs: Job[] = []
  private at = 0
  private waitingBytes = 0

  get length(): number {
    return this.jobs.length - this.at
  }

  get bytes(): number {
    return this.waitingBytes
  }

  get isNextLarge(): boolean {
    return this.length > 0 && this.jobs[this.at]!.size > WHOLE_FILE_BYTES
  }

  push(job: Job): void {
    this.jobs.push(job)
    this.waitingBytes += job.size
  }

  /** The next batch: one large file alone, or small ones together. Not to be called when the queue is empty. */
  take(): Job[] {
    const batch: Job[] = []
    let bytes = 0
    while (this.length > 0 && batch.length < BATCH_ENTRIES) {
      const job = this.jobs[this.at]!
      if (batch.length > 0 && (bytes + job.size > BATCH_BYTES || job.size > WHOLE_FILE_BYTES)) break
      this.at++
      batch.push(job)
      bytes += job.size
      if (job.size > WHOLE_FILE_BYTES) break
    }
    this.waitingBytes -= bytes
    if (this.at > TRIM) {
      this.jobs = this.jobs.slice(this.at)
      this.at = 0
    }
    return batch
  }
}
