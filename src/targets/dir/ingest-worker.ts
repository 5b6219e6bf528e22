/**
 * A worker thread of the ingest: reads and hashes batches, asks the main thread which contents are new, compresses those
 * into blocks and hands the blocks back. The main thread alone writes packs and the index.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Id } from '../../model/entry.ts'
import { META } from '../../native/addon.ts'
import { BlockBuilder } from '../../store/block-builder.ts'
import { OBJECT } from '../../store/pack-format.ts'
import { BufferPool } from './buffer-pool.ts'
import { createCloneSource } from './clone-source.ts'
import { type BatchResults, contentId, type ReadResult, readBatch } from './ingest-read.ts'
import { type ChunkSink, captureLargeFile } from './large-file.ts'

export type ToWorker =
  | { type: 'batch'; batch: number; root: number; paths: Uint8Array; count: number; bytes: number }
  | { type: 'large'; batch: number; root: number; path: string }
  | { type: 'wanted'; batch: number; wanted: Uint8Array }
  | { type: 'flush' }
  | { type: 'stop' }
export type FromWorker =
  | { type: 'read'; batch: number; results: BatchResults }
  | { type: 'claim'; batch: number; ids: Uint8Array }
  | {
      type: 'done'
      batch: number
      result: ReadResult
      recipe?: { id: Id; bytes: Uint8Array }
      clone?: { id: Id; size: number }
    }
  | { type: 'failed'; batch: number; error: { message: string; code?: string } }
  | { type: 'block'; bytes: Uint8Array }
  | { type: 'flushed' }
  | { type: 'stopped' }

const port = parentPort!
const builder = new BlockBuilder()
const pool = new BufferPool()
/** Bytes of batches whose verdict is not in yet, by batch. */
const waiting = new Map<number, (wanted: Uint8Array) => void>()
/** Ends the large files that wait for a verdict, so that they close what they have open. */
const stops = new Set<() => void>()
const clones = createCloneSource((workerData as { clones: string | undefined }).clones)

const post = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)

function emit(block: Buffer | undefined): void {
  if (!block) return
  // A small buffer may lie in node's pool, which cannot be handed over: then a copy goes.
  const isAlone = block.buffer.byteLength === block.byteLength
  post({ type: 'block', bytes: block }, isAlone ? [block.buffer as ArrayBuffer] : [])
}

function readSmall(batch: number, root: number, paths: Uint8Array, count: number, bytes: number): void {
  const taken: Buffer[] = []
  const buffers = (size: number) => {
    const buffer = pool.take(size)
    taken.push(buffer)
    return buffer
  }
  const { results, contents } = readBatch(
    root,
    Buffer.from(paths.buffer, paths.byteOffset, paths.byteLength),
    count,
    bytes,
    buffers,
  )
  const meta = Buffer.from(results.meta.buffer, results.meta.byteOffset, results.meta.byteLength)
  waiting.set(batch, wanted => {
    contents.forEach((content, i) => {
      if (wanted[i] && content) emit(builder.add(contentId(meta, i * META.size_), OBJECT.data, content))
    })
    for (const buffer of taken) pool.give(buffer)
  })
  post({ type: 'read', batch, results })
}

async function readLarge(batch: number, root: number, path: string): Promise<void> {
  const extra: { recipe?: { id: Id; bytes: Uint8Array }; clone?: { id: Id; size: number } } = {}
  const sink: ChunkSink = {
    claim: ids =>
      new Promise((resolve, reject) => {
        const stop = () => reject(new Error('stopped'))
        stops.add(stop)
        waiting.set(batch, wanted => {
          stops.delete(stop)
          resolve(ids.map((_, i) => wanted[i] === 1))
        })
        post({ type: 'claim', batch, ids: Buffer.from(ids.join(''), 'latin1') })
      }),
    store: (id, bytes) => emit(builder.add(id, OBJECT.data, bytes)),
    storeRecipe: (id, bytes) => {
      extra.recipe = { id, bytes }
    },
    clonePaths: clones.paths,
    storeClone: (id, size) => {
      extra.clone = { id, size }
    },
  }
  post({ type: 'done', batch, result: await captureLargeFile(root, path, sink), ...extra })
}

function handle(message: ToWorker): void {
  if (message.type === 'batch') readSmall(message.batch, message.root, message.paths, message.count, message.bytes)
  else if (message.type === 'wanted') {
    const resume = waiting.get(message.batch)
    waiting.delete(message.batch)
    resume?.(message.wanted)
  } else if (message.type === 'large') {
    readLarge(message.batch, message.root, message.path).catch(error => fail(message.batch, error))
  } else if (message.type === 'stop') {
    for (const stop of stops) stop()
    // By then they have.
    setImmediate(() => post({ type: 'stopped' }))
  } else {
    emit(builder.finish())
    post({ type: 'flushed' })
  }
}

const fail = (batch: number, error: unknown) =>
  post({
    type: 'failed',
    batch,
    error: { message: (error as Error).message, code: (error as NodeJS.ErrnoException).code },
  })

port.on('message', (message: ToWorker) => {
  try {
    handle(message)
  } catch (error) {
    fail('batch' in message ? message.batch : -1, error)
  }
})
