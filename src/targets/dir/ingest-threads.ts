/**
 * The worker threads of the ingest, seen from the main thread: gives them batches, answers which contents are new, and
 * appends the blocks they return. At most a few batches per worker are in flight.
 */
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import type { Id } from '../../model/entry.ts'
import { ID_BYTES, idFromBytes } from '../../model/id.ts'
import { OBJECT } from '../../store/pack-format.ts'
import { releaseBuffer } from '../../store/release-buffer.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { failedResult } from './failed-result.ts'
import { type IngestQueue, isLarge, type Job, pathList, totalBytes } from './ingest-queue.ts'
import { type ReadResult, resultsOf, WHOLE_FILE_BYTES } from './ingest-read.ts'
import type { FromWorker, ToWorker } from './ingest-worker.ts'
import { startWorker } from './start-worker.ts'

const WORKERS = 2
/** Batches in flight per worker: one being read, one waiting for its verdict, one queued. */
const DEPTH = 3

export interface ThreadOptions {
  store: Store
  writer: StoreWriter
  root: number
  queue: IngestQueue
  /** Called with each result, and once after each batch. */
  onResult(job: Job, result: ReadResult): void
  onBatch(): void
  /** Something that is no file's fault: the capture cannot go on. */
  onFailure(error: Error): void
}

interface Running {
  worker: Worker
  /** Batches in flight; a large file, with its windows, counts as many. */
  load: number
  flushed?: () => void
  stopped?: () => void
}

export class IngestThreads {
  private readonly options: ThreadOptions
  private readonly running: Running[]
  private readonly batches = new Map<number, Job[]>()
  private nextBatch = 1
  private closing = false

  constructor(options: ThreadOptions) {
    this.options = options
    this.running = Array.from({ length: WORKERS }, () => this.start())
  }

  get isIdle(): boolean {
    return this.batches.size === 0
  }

  /** Keeps the workers busy as long as something is queued. */
  pump(): void {
    for (const running of this.running) {
      while (running.load < DEPTH && this.options.queue.length > 0) this.dispatch(running)
    }
  }

  /** Returns when all blocks are appended. Nothing may be in flight. A worker that failed does not answer: see `close`. */
  async flush(): Promise<void> {
    await Promise.all(
      this.running.map(
        running =>
          new Promise<void>(resolve => {
            running.flushed = resolve
            send(running, { type: 'flush' })
          }),
      ),
    )
  }

  /** A thread that ends in the middle of a file would leave it open, and the room of a file that is deleted then taken. */
  async close(): Promise<void> {
    this.closing = true
    if (!this.isIdle) await Promise.all(this.running.map(stop))
    await Promise.all(this.running.map(({ worker }) => worker.terminate()))
  }

  private start(): Running {
    const worker = startWorker('ingest-worker', {
      workerData: { clones: this.options.writer.discards ? undefined : join(this.options.store.directory, 'clones') },
      resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 },
    })
    const running: Running = { worker, load: 0 }
    worker.on('message', (message: FromWorker) => this.receive(running, message))
    worker.on('error', error => this.options.onFailure(error as Error))
    worker.on('exit', code => {
      if (!this.closing) this.options.onFailure(new Error(`a reading thread ended unexpectedly (${code})`))
    })
    return running
  }

  private dispatch(running: Running): void {
    const { root, queue } = this.options
    const jobs = queue.take()
    const batch = this.nextBatch++
    this.batches.set(batch, jobs)
    running.load += loadOf(jobs)
    if (isLarge(jobs)) send(running, { type: 'large', batch, root, path: jobs[0]!.path })
    else
      send(running, { type: 'batch', batch, root, paths: pathList(jobs), count: jobs.length, bytes: totalBytes(jobs) })
  }

  private receive(running: Running, message: FromWorker): void {
    try {
      if (!this.closing) this.handle(running, message)
      else if (message.type === 'stopped') running.stopped?.()
    } catch (error) {
      this.options.onFailure(error as Error)
    }
  }

  private handle(running: Running, message: FromWorker): void {
    const { writer } = this.options
    switch (message.type) {
      case 'block':
        writer.addBlock(Buffer.from(message.bytes.buffer, message.bytes.byteOffset, message.bytes.byteLength))
        releaseBuffer(message.bytes)
        return
      case 'claim': {
        const ids = Array.from({ length: message.ids.length / ID_BYTES }, (_, i) =>
          idFromBytes(message.ids, i * ID_BYTES),
        )
        send(running, { type: 'wanted', batch: message.batch, wanted: this.claim(ids) })
        return
      }
      case 'read': {
        const results = resultsOf(message.results)
        send(running, {
          type: 'wanted',
          batch: message.batch,
          wanted: this.claim(results.map(result => result.content)),
        })
        this.complete(running, message.batch, results)
        return
      }
      case 'done':
        if (message.recipe) writer.putAs(message.recipe.id, OBJECT.recipe, message.recipe.bytes)
        if (message.clone) writer.addClone(message.clone.id, message.clone.size)
        this.complete(running, message.batch, [message.result])
        return
      case 'failed':
        if (!this.isLargeBatch(message.batch))
          throw Object.assign(new Error(message.error.message), { code: message.error.code })
        this.complete(running, message.batch, [failedResult(message.error)])
        return
      case 'flushed':
        running.flushed?.()
    }
  }

  private isLargeBatch(batch: number): boolean {
    const jobs = this.batches.get(batch)
    return jobs !== undefined && isLarge(jobs)
  }

  private complete(running: Running, batch: number, results: ReadResult[]): void {
    const jobs = this.batches.get(batch)!
    this.batches.delete(batch)
    running.load -= loadOf(jobs)
    for (const [i, job] of jobs.entries()) {
      const result = results[i]!
      // It grew beyond one object since the walk: again, as a large file.
      if (result.unknown === 'too-large') this.options.queue.push({ ...job, size: WHOLE_FILE_BYTES + 1 })
      else this.options.onResult(job, result)
    }
    this.pump()
    this.options.onBatch()
  }

  private claim(ids: Id[]): Uint8Array {
    return Uint8Array.from(ids, id => (id !== '' && this.options.writer.claim(id) ? 1 : 0))
  }
}

function stop(running: Running): Promise<void> {
  return new Promise(resolve => {
    // One that failed does not answer.
    if (running.worker.threadId === -1) resolve()
    running.worker.once('exit', () => resolve())
    running.stopped = resolve
    send(running, { type: 'stop' })
  })
}

const loadOf = (jobs: Job[]): number => (isLarge(jobs) ? DEPTH : 1)
const send = (running: Running, message: ToWorker) => running.worker.postMessage(message)
