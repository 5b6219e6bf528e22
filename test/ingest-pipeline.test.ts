/** The threads of a capture with a real store behind them: what they report is in the store, whoever compressed it. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Hasher, hashBytes } from '../src/model/id.ts'
import { addon } from '../src/native/addon.ts'
import { Store } from '../src/store/store.ts'
import type { StoreWriter } from '../src/store/store-writer.ts'
import { IngestPipeline } from '../src/targets/dir/ingest-pipeline.ts'
import { IngestQueue } from '../src/targets/dir/ingest-queue.ts'
import type { ReadResult } from '../src/targets/dir/ingest-read.ts'

const LARGE_BYTES = 7 * 1024 * 1024
let directory: string
let store: Store
let writer: StoreWriter
let root: number

beforeEach(async () => {
  directory = fs.mkdtempSync(join(tmpdir(), 'savepoint-pipeline-'))
  fs.mkdirSync(join(directory, 'home'))
  fs.mkdirSync(join(directory, 'tree'))
  store = Store.open(join(directory, 'home'))
  writer = await store.writer()
  root = addon.openRoot(Buffer.from(join(directory, 'tree')))
})
afterEach(() => {
  addon.close(root)
  writer.close()
  store.index.close()
  fs.rmSync(directory, { recursive: true })
})

function startPipeline(usesNativeZstd = true) {
  const queue = new IngestQueue()
  const results = new Map<string, Pick<ReadResult, 'errno' | 'content' | 'size' | 'unknown'>>()
  const failures: Error[] = []
  let changed = () => {}
  const pipeline = new IngestPipeline({
    store,
    writer,
    root,
    queue,
    usesNativeZstd,
    onResult: (job, result) => job.done(result),
    onBatch: () => changed(),
    onFailure: error => {
      failures.push(error)
      changed()
    },
  })
  return {
    pipeline,
    results,
    failures,
    add: (path: string, size: number) => {
      const done = ({ errno, content, size, unknown }: ReadResult) =>
        results.set(path, { errno, content, size, unknown })
      queue.push({ path, size, isCounted: true, done })
    },
    finish: async () => {
      pipeline.pump()
      while (!pipeline.isIdle && failures.length === 0)
        await new Promise<void>(resolve => {
          changed = resolve
        })
      if (failures.length === 0) await pipeline.flush()
    },
  }
}

function writeTree(): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (let i = 0; i < 700; i++) files.set(`f${i}`, Buffer.from(`some text ${i % 350}\n`.repeat(i % 90)))
  const large = Buffer.alloc(LARGE_BYTES)
  for (let i = 0; i < large.length; i += 4) large.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, i)
  files.set('large', large)
  for (const [name, content] of files) fs.writeFileSync(join(directory, 'tree', name), content)
  return files
}

function readStored(content: string): Buffer {
  const source = store.contentSource(content)
  if (source.kind === 'object') return store.read(content)
  if (source.kind === 'clone') return fs.readFileSync(source.file)
  return Buffer.concat(
    source.items.map(item => ('hole' in item ? Buffer.alloc(item.hole) : store.readAt(store.locate(item.chunk)))),
  )
}

test.each([true, false])('small and large files are in the store (zstd in the threads: %s)', async usesNativeZstd => {
  const files = writeTree()
  const { pipeline, results, failures, add, finish } = startPipeline(usesNativeZstd)
  for (const [name, content] of files) add(name, content.length)
  // Seen by the walk as a small one, and as one that is gone.
  fs.writeFileSync(join(directory, 'tree', 'grown'), files.get('large')!)
  add('grown', 10)
  add('gone', 10)
  add('large-gone', LARGE_BYTES)
  await finish()
  await pipeline.close()
  expect(failures).toEqual([])
  writer.commit()
  for (const [name, content] of files) {
    expect([name, results.get(name)!.content]).toEqual([name, hashBytes(content)])
    expect(readStored(hashBytes(content)).equals(content)).toBe(true)
  }
  expect(results.get('grown')).toMatchObject({ errno: 0, content: hashBytes(files.get('large')!), size: LARGE_BYTES })
  expect(results.get('gone')!.errno).toBe(2)
  expect(results.get('large-gone')!.unknown).toBe('vanished')
  expect(writer.newBytes).toBeLessThan(1.1 * LARGE_BYTES)
})

test('a close in the middle of a large file leaves nothing open', async () => {
  const files = writeTree()
  const before = fs.readdirSync('/proc/self/fd').length
  const { pipeline, results, failures, add } = startPipeline()
  add('large', files.get('large')!.length)
  pipeline.pump()
  await pipeline.close()
  expect([results.size, failures]).toEqual([0, []])
  expect(fs.readdirSync('/proc/self/fd').length).toBe(before)
})

test('what the writer cannot take is a failure of the capture, not of a file', async () => {
  const files = writeTree()
  const { pipeline, failures, add, finish } = startPipeline()
  for (const [name, content] of files) add(name, content.length)
  writer.addBlock = () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  }
  await finish()
  await pipeline.close()
  expect(failures[0]).toMatchObject({ code: 'ENOSPC' })
})

test('a file with holes keeps them, and its id is that of the zeros', async () => {
  const file = join(directory, 'tree', 'sparse')
  fs.writeFileSync(file, 'begin')
  fs.truncateSync(file, LARGE_BYTES)
  const fd = fs.openSync(file, 'r+')
  fs.writeSync(fd, Buffer.alloc(100_000, 1), 0, 100_000, 3_000_000)
  fs.closeSync(fd)
  const { pipeline, results, add, finish } = startPipeline()
  add('sparse', LARGE_BYTES)
  await finish()
  await pipeline.close()
  writer.commit()
  const hasher = new Hasher()
  hasher.update(fs.readFileSync(file))
  expect(results.get('sparse')!.content).toBe(hasher.digest())
  expect(readStored(hasher.digest()).equals(fs.readFileSync(file))).toBe(true)
})

test('what a large file was when it was listed, and is no more, is gone; the others are read', async () => {
  const tree = join(directory, 'tree')
  fs.writeFileSync(join(tree, 'was-directory'), '')
  fs.mkdirSync(join(tree, 'is-directory'))
  execFileSync('mkfifo', [join(tree, 'is-fifo')])
  fs.writeFileSync(join(tree, 'file'), Buffer.alloc(LARGE_BYTES, 'x'))
  const { results, failures, add, finish, pipeline } = startPipeline()
  for (const path of ['was-directory/large', 'is-directory', 'is-fifo', 'file']) add(path, LARGE_BYTES)
  await finish()
  await pipeline.close()
  expect(failures).toEqual([])
  expect([...results].map(([path, { unknown }]) => [path, unknown]).sort()).toEqual([
    ['file', undefined],
    ['is-directory', 'vanished'],
    ['is-fifo', 'vanished'],
    ['was-directory/large', 'vanished'],
  ])
})
