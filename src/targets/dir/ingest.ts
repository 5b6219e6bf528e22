/**
 * Turns paths into stored contents. A handful is read here and now; more are left to threads (ingest-pipeline.ts). Memory does
 * not grow with the tree: the walk waits while the queue is long.
 */
import { join } from 'node:path'
import { cancelled } from '../../errors/errors.ts'
import { OBJECT } from '../../store/pack-format.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { readHere } from './chunk-reader.ts'
import { createCloneSource } from './clone-source.ts'
import { failedResult } from './failed-result.ts'
import { IngestPipeline } from './ingest-pipeline.ts'
import { IngestQueue, isLarge, type Job, pathList, totalBytes } from './ingest-queue.ts'
import { type ReadResult, readBatch } from './ingest-read.ts'
import { captureLargeFile } from './large-file.ts'

/** Up to here threads would save little, and contents that share a block with the trees need less room. */
const INLINE_ENTRIES = 300
const INLINE_BYTES = 12 * 1024 * 1024
/** The walk waits while more than this many entries are queued. */
const QUEUE_LIMIT = 4096

/** Progress is told each time so many more are found. */
const TOLD_FILES = 1000

/** A command that is being started has the processors for itself: meanwhile nothing is read. */
export interface CommandStart {
  /** It may begin before the capture is over. */
  readonly isStarted: boolean
  readonly isBegun: boolean
  readonly begun: Promise<void>
}

/** The totals grow as long as the walk goes on. */
export interface IngestProgress {
  files: number
  bytes: number
  totalFiles: number
  totalBytes: number
  /** Files, directories and all else that was found until now. */
  entries: number
}

export class Ingest {
  private readonly store: Store
  private readonly writer: StoreWriter
  private readonly root: number
  private readonly onProgress: ((progress: IngestProgress) => void) | undefined
  private readonly isBackground: boolean
  private readonly start: CommandStart | undefined
  private readonly signal: AbortSignal | undefined
  private readonly queue = new IngestQueue()
  private readonly progress: IngestProgress = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0, entries: 0 }
  private readonly failed = Promise.withResolvers<never>()
  private threads: IngestPipeline | undefined
  private wake: (() => void) | undefined
  private failure: Error | undefined

  constructor(
    store: Store,
    writer: StoreWriter,
    root: number,
    onProgress?: (progress: IngestProgress) => void,
    signal?: AbortSignal,
    isBackground = false,
    start?: CommandStart,
  ) {
    this.start = start
    void start?.begun.then(() => this.pump())
    this.isBackground = isBackground
    this.store = store
    this.writer = writer
    this.root = root
    this.onProgress = onProgress
    // Whoever drains sees it; until then it must not count as unhandled.
    this.failed.promise.catch(() => {})
    this.signal = signal
    if (signal?.aborted) this.cancel()
    else signal?.addEventListener('abort', this.cancel, { once: true })
  }

  /** Queues an entry; its `done` is called with the result before `drain` returns. */
  submit(job: Job): void {
    this.queue.push(job)
    this.progress.totalBytes += job.size
    // How many there are shows before the first of them is read.
    if (job.isCounted) this.progress.totalFiles++
    if (++this.progress.entries % TOLD_FILES === 0) this.onProgress?.(this.progress)
    if (!this.isHeld) this.pump()
  }

  private get isHeld(): boolean {
    return this.start?.isBegun === false
  }

  private pump(): void {
    if (!this.threads && (this.queue.length > INLINE_ENTRIES || this.queue.bytes > INLINE_BYTES)) this.startThreads()
    this.threads?.pump()
  }

  /** Back-pressure: returns when the queue has room again. */
  async room(): Promise<void> {
    while ((this.threads || this.isHeld) && this.queue.length > QUEUE_LIMIT && !this.failure) await this.progressed()
    this.throwFailure()
  }

  /** Returns when everything submitted is read and its new contents are appended (not yet committed). */
  async drain(): Promise<void> {
    if (this.start?.isStarted) await Promise.race([this.failed.promise, this.start.begun])
    this.throwFailure()
    this.pump()
    if (!this.threads) await this.readInline()
    while (this.threads && (this.queue.length > 0 || !this.threads.isIdle)) {
      this.throwFailure()
      await this.progressed()
    }
    this.throwFailure()
    await Promise.race([this.failed.promise, this.threads?.flush()])
  }

  async close(): Promise<void> {
    this.signal?.removeEventListener('abort', this.cancel)
    await this.threads?.close()
  }

  private readonly cancel = (): void => this.fail(cancelled())

  private progressed(): Promise<void> {
    return new Promise(resolve => {
      this.wake = resolve
    })
  }

  private startThreads(): void {
    const { store, writer, root, queue } = this
    this.threads = new IngestPipeline({
      store,
      writer,
      root,
      queue,
      isBackground: this.isBackground,
      onResult: (job, result) => this.finish(job, result),
      onBatch: () => {
        this.onProgress?.(this.progress)
        this.wake?.()
      },
      onFailure: error => this.fail(error),
    })
  }

  private async readInline(): Promise<void> {
    while (this.queue.length > 0) {
      this.throwFailure()
      const jobs = this.queue.take()
      if (isLarge(jobs)) await this.readLargeInline(jobs[0]!)
      else await this.readSmallInline(jobs)
      this.onProgress?.(this.progress)
    }
  }

  private async readSmallInline(jobs: Job[]): Promise<void> {
    for (const [i, result] of readBatch(this.root, pathList(jobs), jobs.length, totalBytes(jobs)).entries()) {
      if (result.content !== '') this.writer.putAs(result.content, OBJECT.data, result.contentBytes())
      if (result.unknown === 'too-large') await this.readLargeInline(jobs[i]!)
      else this.finish(jobs[i]!, result)
    }
  }

  private async readLargeInline(job: Job): Promise<void> {
    const clones = createCloneSource(this.writer.discards ? undefined : join(this.store.directory, 'clones'))
    const result = await captureLargeFile(this.root, job.path, {
      ...readHere({
        claim: id => this.writer.claim(id),
        store: (id, bytes) => this.writer.putClaimed(id, OBJECT.data, bytes),
      }),
      storeRecipe: (id, bytes) => this.writer.putAs(id, OBJECT.recipe, bytes),
      clonePaths: clones.paths,
      storeClone: (id, size) => this.writer.addClone(id, size),
    }).catch(error => failedResult(error))
    this.finish(job, result)
  }

  private finish(job: Job, result: ReadResult): void {
    if (job.isCounted) this.progress.files++
    // What the walk saw, as in the total: a directory has no size there, and a file may have grown.
    this.progress.bytes += job.size
    job.done(result)
  }

  private fail(error: Error): void {
    this.failure ??= error
    this.failed.reject(this.failure)
    this.wake?.()
  }

  private throwFailure(): void {
    if (this.failure) throw this.failure
  }
}
