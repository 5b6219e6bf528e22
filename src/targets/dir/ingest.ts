/**
 * Turns paths into stored contents. A handful is read here and now; more are spread over worker threads. Bounded: at
 * most a few batches per worker are in flight, so memory does not grow with the tree.
 */
import { Worker } from 'node:worker_threads'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../../model/entry.ts'
import { ID_BYTES, idFromBytes } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import { blockObjects, decodeBlockHeader, OBJECT } from '../../store/pack-format.ts'
import { cancelled } from '../../errors/errors.ts'
import { releaseBuffer } from '../../store/release-buffer.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { createCloneSource } from './clone-source.ts'
import type { FromWorker, ToWorker } from './ingest-worker.ts'
import { type ReadResult, readBatch, resultsOf, WHOLE_FILE_BYTES } from './ingest-read.ts'
import { captureLargeFile } from './large-file.ts'

const WORKERS = 2
const BATCH_ENTRIES = 256
const BATCH_BYTES = 1536 * 1024
/** Batches in flight per worker: one being read, one waiting for its verdict, one queued. */
const DEPTH = 3
/** Up to here starting threads would cost more than it saves. */
const INLINE_ENTRIES = 300
const INLINE_BYTES = 12 * 1024 * 1024

/** The walk waits while more than this many entries are queued. */
const QUEUE_LIMIT = 16_384
/** Entries that are done are dropped from the front of the queue in steps of this size. */
const QUEUE_TRIM = 4096

export interface IngestProgress {
  files: number
  bytes: number
}

interface Job {
  path: Raw
  size: number
  done(result: ReadResult): void
}

interface Running {
  worker: Worker
  /** Batches in flight; a large file, with its windows, counts as many. */
  load: number
  flushed?: () => void
}

export class Ingest {
  private readonly store: Store
  private readonly writer: StoreWriter
  private readonly root: number
  private readonly onProgress: ((progress: IngestProgress) => void) | undefined
  private queue: Job[] = []
  private queueAt = 0
  private queuedBytes = 0
  private readonly progress: IngestProgress = { files: 0, bytes: 0 }
  private readonly running: Running[] = []
  private readonly batches = new Map<number, Job[]>()
  private nextBatch = 1
  private closing = false
  private wake: (() => void) | undefined
  private failure: Error | undefined
  private readonly failed = Promise.withResolvers<never>()

  constructor(
    store: Store,
    writer: StoreWriter,
    root: number,
    onProgress?: (progress: IngestProgress) => void,
    signal?: AbortSignal,
  ) {
    this.store = store
    this.writer = writer
    this.root = root
    this.onProgress = onProgress
    // Whoever drains sees it; until then it must not count as unhandled.
    this.failed.promise.catch(() => {})
    const cancel = () => this.fail(cancelled())
    if (signal?.aborted) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
  }

  /** Queues an entry; `done` is called with its result before `drain` returns. `size` is what the walk saw. */
  submit(path: Raw, size: number, done: (result: ReadResult) => void): void {
    this.queue.push({ path, size, done })
    this.queuedBytes += size
    if (this.running.length > 0) this.pump()
    else if (this.queue.length - this.queueAt > INLINE_ENTRIES || this.queuedBytes > INLINE_BYTES) this.start()
  }

  /** Back-pressure: returns when the queue has room again. */
  async room(): Promise<void> {
    while (this.running.length > 0 && this.queue.length - this.queueAt > QUEUE_LIMIT && !this.failure) await this.progressed()
    if (this.failure) throw this.failure
  }

  private progressed(): Promise<void> {
    return new Promise(resolve => {
      this.wake = resolve
    })
  }

  /** Returns when everything submitted is read and its new contents are appended (not yet committed). */
  async drain(): Promise<void> {
    if (this.failure) throw this.failure
    if (this.running.length === 0) await this.readInline()
    this.pump()
    while (this.queueAt < this.queue.length || this.batches.size > 0) {
      if (this.failure) throw this.failure
      await this.progressed()
      this.pump()
    }
    if (this.failure) throw this.failure
    await Promise.all(this.running.map(running => this.flush(running)))
    if (this.failure) throw this.failure
  }

  async close(): Promise<void> {
    this.closing = true
    await Promise.all(this.running.map(({ worker }) => worker.terminate()))
    this.running.length = 0
  }

  private takeJobs(): Job[] {
    const jobs: Job[] = []
    let bytes = 0
    while (this.queueAt < this.queue.length && jobs.length < BATCH_ENTRIES) {
      const job = this.queue[this.queueAt]!
      if (jobs.length > 0 && (bytes + job.size > BATCH_BYTES || job.size > WHOLE_FILE_BYTES)) break
      this.queueAt++
      jobs.push(job)
      bytes += job.size
      if (job.size > WHOLE_FILE_BYTES) break
    }
    this.queuedBytes -= bytes
    if (this.queueAt > QUEUE_TRIM) {
      this.queue = this.queue.slice(this.queueAt)
      this.queueAt = 0
    }
    return jobs
  }

  private finish(job: Job, result: ReadResult): void {
    this.progress.files++
    this.progress.bytes += result.size
    job.done(result)
  }

  // --- few entries: on this thread ---

  private async readInline(): Promise<void> {
    while (this.queueAt < this.queue.length) {
      if (this.failure) throw this.failure
      const jobs = this.takeJobs()
      if (jobs[0]!.size > WHOLE_FILE_BYTES) await this.readLargeInline(jobs[0]!)
      else {
        const { results, contents } = readBatch(this.root, pathList(jobs), jobs.length, totalBytes(jobs), Buffer.allocUnsafeSlow)
        for (const [i, result] of resultsOf(results).entries()) {
          if (contents[i]) this.writer.putAs(result.content, OBJECT.data, contents[i])
          if (result.unknown === 'too-large') await this.readLargeInline(jobs[i]!)
          else this.finish(jobs[i]!, result)
        }
      }
      this.onProgress?.(this.progress)
    }
  }

  private async readLargeInline(job: Job): Promise<void> {
    const clones = createCloneSource(join(this.store.directory, 'clones'))
    const result = await captureLargeFile(this.root, job.path, {
      claim: async ids => ids.map(id => this.writer.claim(id)),
      store: (id, bytes) => this.writer.putClaimed(id, OBJECT.data, bytes),
      storeRecipe: (id, bytes) => this.writer.putAs(id, OBJECT.recipe, bytes),
      clonePaths: clones.paths,
      storeClone: (id, size) => this.writer.addClone(id, size),
    }).catch(error => failedResult(error))
    this.finish(job, result)
  }

  // --- many entries: in workers ---

  private start(): void {
    const file = ['./ingest-worker.js', './ingest-worker.ts']
      .map(name => new URL(name, import.meta.url))
      .find(url => existsSync(url))!
    for (let i = 0; i < WORKERS; i++) {
      const worker = new Worker(file, {
        workerData: { clones: join(this.store.directory, 'clones') },
        execArgv: ['--disable-warning=ExperimentalWarning'],
        resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 },
      })
      const running: Running = { worker, load: 0 }
      worker.on('message', (message: FromWorker) => this.receive(running, message))
      worker.on('error', error => this.fail(error as Error))
      worker.on('exit', code => {
        if (!this.closing) this.fail(new Error(`a reading thread ended unexpectedly (${code})`))
      })
      this.running.push(running)
    }
    this.pump()
  }

  private pump(): void {
    for (const running of this.running) {
      while (running.load < DEPTH && this.queueAt < this.queue.length) this.dispatch(running)
    }
  }

  private dispatch(running: Running): void {
    const jobs = this.takeJobs()
    const batch = this.nextBatch++
    this.batches.set(batch, jobs)
    running.load += loadOf(jobs)
    if (jobs[0]!.size > WHOLE_FILE_BYTES) send(running, { type: 'large', batch, root: this.root, path: jobs[0]!.path })
    else {
      const paths = pathList(jobs)
      send(running, { type: 'batch', batch, root: this.root, paths, count: jobs.length, bytes: totalBytes(jobs) })
    }
  }

  private receive(running: Running, message: FromWorker): void {
    try {
      this.handle(running, message)
    } catch (error) {
      this.fail(error as Error)
    }
  }

  private handle(running: Running, message: FromWorker): void {
    switch (message.type) {
      case 'block':
        this.appendBlock(Buffer.from(message.bytes.buffer, message.bytes.byteOffset, message.bytes.byteLength))
        return
      case 'claim': {
        const ids = Array.from({ length: message.ids.length / ID_BYTES }, (_, i) => idFromBytes(message.ids, i * ID_BYTES))
        send(running, { type: 'wanted', batch: message.batch, wanted: this.claimAll(ids) })
        return
      }
      case 'read': {
        const results = resultsOf(message.results)
        send(running, { type: 'wanted', batch: message.batch, wanted: this.claimAll(results.map(result => result.content)) })
        this.complete(running, message.batch, results)
        return
      }
      case 'done':
        if (message.recipe) this.writer.putAs(message.recipe.id, OBJECT.recipe, message.recipe.bytes)
        if (message.clone) this.writer.addClone(message.clone.id, message.clone.size)
        this.complete(running, message.batch, [message.result])
        return
      case 'failed':
        if (!this.batches.has(message.batch)) throw Object.assign(new Error(message.error.message), { code: message.error.code })
        this.complete(running, message.batch, [failedResult(message.error)])
        return
      case 'flushed':
        running.flushed?.()
    }
  }

  private complete(running: Running, batch: number, results: ReadResult[]): void {
    const jobs = this.batches.get(batch)!
    this.batches.delete(batch)
    running.load -= loadOf(jobs)
    for (const [i, job] of jobs.entries()) {
      const result = results[i] ?? results[0]!
      // It grew beyond one object since the walk: again, as a large file.
      if (result.unknown === 'too-large') this.queue.push({ ...job, size: WHOLE_FILE_BYTES + 1 })
      else this.finish(job, result)
    }
    this.onProgress?.(this.progress)
    this.pump()
    this.wake?.()
  }

  private claimAll(ids: Id[]): Uint8Array {
    return Uint8Array.from(ids, id => (id !== '' && this.writer.claim(id) ? 1 : 0))
  }

  private appendBlock(bytes: Buffer): void {
    const header = decodeBlockHeader(bytes)!
    this.writer.addBlock({ objects: blockObjects(bytes, header), bytes })
    releaseBuffer(bytes)
  }

  private flush(running: Running): Promise<void> {
    return new Promise(resolve => {
      running.flushed = resolve
      send(running, { type: 'flush' })
    })
  }

  private fail(error: Error): void {
    this.failure ??= error
    this.failed.reject(this.failure)
    this.wake?.()
    // A worker that failed will not answer; whoever waits for it looks at the failure.
    for (const { flushed } of this.running) flushed?.()
  }
}

const loadOf = (jobs: Job[]) => (jobs[0]!.size > WHOLE_FILE_BYTES ? DEPTH : 1)
const send = (running: Running, message: ToWorker) => running.worker.postMessage(message)
const totalBytes = (jobs: Job[]) => jobs.reduce((sum, job) => sum + job.size, 0)
const pathList = (jobs: Job[]) => Buffer.from(jobs.map(job => job.path).join('\0'), 'latin1')

/** What the file itself can be to blame for. Anything else (a full disk, a defect) fails the capture. */
const fileErrors = ['ENOENT', 'EACCES', 'EPERM', 'ELOOP', 'EIO', 'ENXIO', 'ESTALE']

/** The result for an entry that could not be read. */
function failedResult(error: { message: string; code?: string }): ReadResult {
  if (!fileErrors.includes(error.code ?? '')) throw Object.assign(new Error(error.message), { code: error.code })
  return {
    errno: 1,
    unknown: error.code === 'ENOENT' ? 'vanished' : 'unreadable',
    mode: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    size: 0,
    mtimeNs: 0n,
    ctimeNs: 0n,
    ino: 0n,
    content: '',
    target: '',
    xattrs: undefined,
    sparse: false,
    rdevMajor: 0,
    rdevMinor: 0,
  }
}
