/**
 * The threads of the ingest (native/addon/pipeline.c), seen from here: gives them batches, answers which contents are
 * new, and appends the blocks they return. At most a few batches are in flight, so memory does not grow with the tree.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import { errnoOf } from '../../errors/errors.ts'
import type { Id } from '../../model/entry.ts'
import { Hasher } from '../../model/id.ts'
import { addon, EVENT, META, type NativeIngest } from '../../native/addon.ts'
import { packBlock } from '../../store/block-builder.ts'
import { blockParameters, WORTHWHILE } from '../../store/compress.ts'
import { BLOCK_TARGET_BYTES, OBJECT } from '../../store/pack-format.ts'
import type { RecipeItem } from '../../store/recipe.ts'
import { releaseBuffer } from '../../store/release-buffer.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { CHUNK, WINDOW_BYTES } from './chunk-reader.ts'
import { createCloneSource } from './clone-source.ts'
import { failedResult } from './failed-result.ts'
import { type IngestQueue, isLarge, type Job, pathList, totalBytes } from './ingest-queue.ts'
import {
  contentId,
  contentOf,
  MetaResult,
  READ_RETRIES,
  type ReadResult,
  SLACK_BYTES,
  WHOLE_FILE_BYTES,
} from './ingest-read.ts'
import { type ChunkSink, captureLargeFile } from './large-file.ts'

/** More would be faster than any disk takes the result. */
const MAX_THREADS = 4
/** Batches in flight per thread: what lasts while this thread writes to the index. */
const DEPTH = 6
/** How far the threads stand back behind a command that is at work. */
const BACKGROUND_NICE = 10
/** Large files at a time. Each has one window being read and some waiting to be packed. */
const LARGE_AT_ONCE = 2

const none = Buffer.alloc(0)
const chunkLimits = Buffer.from(Uint32Array.of(CHUNK.minBytes, CHUNK.averageBytes, CHUNK.maxBytes).buffer)

export interface PipelineOptions {
  store: Store
  writer: StoreWriter
  root: number
  queue: IngestQueue
  /** Called with each result, and once after each batch. */
  onResult(job: Job, result: ReadResult): void
  onBatch(): void
  /** Something that is no file's fault: the capture cannot go on. */
  onFailure(error: Error): void
  /** Whether a command is at work that must not be slowed down. */
  isBackground?: boolean
  /** Whether to use the zstd that Node carries, where it can be reached from the addon. */
  usesNativeZstd?: boolean
}

interface WindowRead {
  meta: Buffer
  hasher: Buffer
}

export class IngestPipeline {
  private readonly options: PipelineOptions
  private readonly native: NativeIngest
  private readonly packsBlocks: boolean
  private readonly threads = Math.max(2, Math.min(MAX_THREADS, availableParallelism()))
  private readonly batches = new Map<number, Job[]>()
  private readonly windows = new Map<number, PromiseWithResolvers<WindowRead>>()
  private readonly large = new Set<Promise<void>>()
  private readonly sink: ChunkSink
  private nextBatch = 1
  private flushed: (() => void) | undefined
  private closed = false

  constructor(options: PipelineOptions) {
    this.options = options
    const { native, packsBlocks } = this.start(options.usesNativeZstd ?? true)
    this.native = native
    this.packsBlocks = packsBlocks
    this.sink = this.createSink()
  }

  get isIdle(): boolean {
    return this.batches.size === 0 && this.large.size === 0
  }

  /** Keeps the threads busy as long as something is queued. */
  pump(): void {
    const { queue } = this.options
    while (queue.length > 0 && this.batches.size < this.threads * DEPTH) {
      if (queue.isNextLarge && this.large.size >= LARGE_AT_ONCE) return
      const jobs = queue.take()
      if (isLarge(jobs)) this.readLarge(jobs[0]!)
      else this.readSmall(jobs)
    }
  }

  /** Returns when all blocks are appended. Nothing may be in flight. */
  flush(): Promise<void> {
    return new Promise(resolve => {
      this.flushed = resolve
      addon.ingestFlush(this.native)
    })
  }

  /** Large files that are not finished end here, so that they close what they have open. */
  async close(): Promise<void> {
    this.closed = true
    addon.ingestClose(this.native)
    for (const { reject } of this.windows.values()) reject(new Error('stopped'))
    await Promise.all(this.large)
  }

  private start(usesZstd: boolean): { native: NativeIngest; packsBlocks: boolean } {
    const nice = this.options.isBackground ? BACKGROUND_NICE : 0
    const settings = { threads: this.threads, blockBytes: BLOCK_TARGET_BYTES, nice, worthwhile: WORTHWHILE }
    for (const parameters of [...(usesZstd ? blockParameters() : []), none]) {
      try {
        const native = addon.ingestNew(settings, parameters, (...event) => this.receive(...event))
        return { native, packsBlocks: parameters.length > 0 }
      } catch (error) {
        if (errnoOf(error) !== 'EOPNOTSUPP') throw error
      }
    }
    throw new Error('unreachable: without parameters nothing can be refused')
  }

  private receive(kind: number, batch: number, errno: number, bytes: Buffer, extra: Buffer): void {
    if (this.closed) return
    try {
      if (kind === EVENT.read) this.receiveRead(batch, errno, bytes, extra)
      else if (kind === EVENT.block) this.receiveBlock(bytes)
      else if (kind === EVENT.flushed) this.flushed?.()
      else throw errorOf(errno)
    } catch (error) {
      this.options.onFailure(error as Error)
    }
  }

  private receiveBlock(bytes: Buffer): void {
    this.options.writer.addBlock(this.packsBlocks ? bytes : packBlock(bytes))
    releaseBuffer(bytes)
  }

  private receiveRead(batch: number, errno: number, meta: Buffer, extra: Buffer): void {
    const count = meta.length / META.size_
    const window = this.windows.get(batch)
    if (window) {
      this.windows.delete(batch)
      this.answer(
        batch,
        Array.from({ length: count }, (_, i) => contentId(meta, i * META.size_)),
      )
      if (errno === 0) window.resolve({ meta, hasher: extra })
      else window.reject(errorOf(errno))
      return
    }
    if (errno !== 0) throw errorOf(errno)
    const contents = Array.from({ length: count }, (_, i) => contentOf(meta, i))
    this.answer(batch, contents)
    this.complete(batch, meta, extra, contents)
  }

  private answer(batch: number, ids: Id[]): void {
    const wanted = Buffer.alloc(ids.length)
    let any = false
    for (let i = 0; i < ids.length; i++) {
      if (ids[i] === '' || !this.options.writer.claim(ids[i]!)) continue
      wanted[i] = 1
      any = true
    }
    addon.ingestStore(this.native, batch, any ? wanted : none)
  }

  // --- entries ---

  private readSmall(jobs: Job[]): void {
    const batch = this.nextBatch++
    this.batches.set(batch, jobs)
    const room = totalBytes(jobs) + SLACK_BYTES
    addon.ingestRead(this.native, batch, this.options.root, pathList(jobs), room, WHOLE_FILE_BYTES, READ_RETRIES)
  }

  private complete(batch: number, meta: Buffer, extra: Buffer, contents: Id[]): void {
    const jobs = this.batches.get(batch)!
    this.batches.delete(batch)
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i]!
      const result = new MetaResult(meta, i, extra, contents[i]!)
      if (result.unknown === 'too-large') {
        // It grew beyond one object since the walk: again, as a large file.
        job.size = WHOLE_FILE_BYTES + 1
        this.options.queue.push(job)
      } else this.options.onResult(job, result)
    }
    this.pump()
    this.options.onBatch()
  }

  // --- large files ---

  private readLarge(job: Job): void {
    const reading: Promise<void> = captureLargeFile(this.options.root, job.path, this.sink)
      .catch(error => failedResult(error))
      .then(result => {
        this.large.delete(reading)
        if (this.closed) return
        this.options.onResult(job, result)
        this.pump()
        this.options.onBatch()
      })
      .catch(error => {
        this.large.delete(reading)
        if (!this.closed) this.options.onFailure(error as Error)
      })
    this.large.add(reading)
  }

  private createSink(): ChunkSink {
    const { store, writer } = this.options
    const clones = createCloneSource(writer.discards ? undefined : join(store.directory, 'clones'))
    return {
      storeChunks: (fd, from, to, hasher, items) => this.storeChunks(fd, from, to, hasher, items),
      hashFile: fd => this.hashFile(fd),
      storeRecipe: (id, bytes) => writer.putAs(id, OBJECT.recipe, bytes),
      clonePaths: clones.paths,
      storeClone: (id, size) => writer.addClone(id, size),
    }
  }

  private async storeChunks(fd: number, from: number, to: number, hasher: Hasher, items: RecipeItem[]) {
    for (let at = from; at < to; ) {
      const read = await this.readWindow(fd, at, to, hasher, chunkLimits)
      if (!read) return false
      for (let i = 0; i < read.length; i += META.size_) {
        const length = read.readUInt32LE(i + META.contentLength)
        items.push({ chunk: contentId(read, i), length })
        at += length
      }
    }
    return true
  }

  private async hashFile(fd: number): Promise<{ id: Id; size: number }> {
    const hasher = new Hasher()
    const { size } = addon.statFd(fd)
    for (let at = 0; at < size; at += WINDOW_BYTES) {
      if (!(await this.readWindow(fd, at, size, hasher, none))) throw new Error('a clone became shorter')
    }
    return { id: hasher.digest(), size }
  }

  /** The chunks of the window, which `hasher` then knows; undefined when the file ended before. */
  private async readWindow(fd: number, at: number, end: number, hasher: Hasher, limits: Buffer) {
    if (this.closed) throw new Error('stopped')
    const batch = this.nextBatch++
    const window = Promise.withResolvers<WindowRead>()
    this.windows.set(batch, window)
    const length = Math.min(WINDOW_BYTES, end - at)
    addon.ingestWindow(this.native, batch, fd, at, length, at + length >= end, hasher.state, limits)
    const read = await window.promise
    if (read.hasher.length === 0) return undefined
    read.hasher.copy(hasher.state)
    return read.meta
  }
}

function errorOf(errno: number): Error {
  const code = getSystemErrorName(-errno)
  return Object.assign(new Error(`${code}: a reading thread failed`), { code })
}
