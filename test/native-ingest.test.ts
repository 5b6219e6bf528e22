/** The threads of the addon that read and pack: what they report is what `readEntries` reads and pack-format.ts writes. */
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { errnoOf } from '../src/errors/errors.ts'
import { Hasher, hashBytes } from '../src/model/id.ts'
import { addon, EVENT, META, META_FLAG, type NativeIngest } from '../src/native/addon.ts'
import { packBlock } from '../src/store/block-builder.ts'
import { blockParameters, decompressBlock } from '../src/store/compress.ts'
import {
  BLOCK_TARGET_BYTES,
  blockObjects,
  blockPayload,
  CODEC,
  decodeBlockHeader,
  isIntactBlock,
  OBJECT,
} from '../src/store/pack-format.ts'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))
const addonFile = join(packageRoot, 'build/savepoint.node')
const none = Buffer.alloc(0)
const MAX_CONTENT = 1024 * 1024
const limits = Buffer.from(Uint32Array.of(1024, 4096, 16_384).buffer)

let directory: string
let root: number
let opened: NativeIngest[]

beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), 'savepoint-ingest-'))
  root = addon.openRoot(Buffer.from(directory))
  opened = []
})
afterEach(() => {
  for (const ingest of opened) addon.ingestClose(ingest)
  addon.close(root)
  fs.rmSync(directory, { recursive: true })
})

interface Read {
  errno: number
  meta: Buffer
  extra: Buffer
}

/** An ingest that stores everything it reads, unless `wants` says otherwise. */
function open({ zstd = blockParameters()[0]!, wants = true, blockBytes = BLOCK_TARGET_BYTES } = {}) {
  const blocks: Buffer[] = []
  const reads = new Map<number, (read: Read) => void>()
  let flushed = () => {}
  let batch = 0
  const settings = { threads: 2, blockBytes, nice: 0, worthwhile: 0.97 }
  const native = addon.ingestNew(settings, zstd, (kind, number, errno, bytes, extra) => {
    if (kind === EVENT.block) blocks.push(Buffer.from(bytes))
    else if (kind === EVENT.flushed) flushed()
    else if (kind === EVENT.read) {
      const read = { errno, meta: bytes, extra }
      const count = bytes.length / META.size_
      addon.ingestStore(native, number, wants && errno === 0 ? Buffer.alloc(count, 1) : none)
      reads.get(number)!(read)
    }
  })
  opened.push(native)
  const report = (start: (batch: number) => void) =>
    new Promise<Read>(resolve => {
      reads.set(++batch, resolve)
      start(batch)
    })
  return {
    native,
    blocks,
    read: (paths: string[], room = MAX_CONTENT) =>
      report(n => addon.ingestRead(native, n, root, Buffer.from(paths.join('\0'), 'latin1'), room, MAX_CONTENT, 2)),
    window: (fd: number, position: number, length: number, last: boolean, hasher: Hasher, cut = limits) =>
      report(n => addon.ingestWindow(native, n, fd, position, length, last, hasher.state, cut)),
    flush: () =>
      new Promise<void>(resolve => {
        flushed = resolve
        addon.ingestFlush(native)
      }),
  }
}

/** The objects of a block by id; the block must be sound. */
function unpack(block: Buffer): Map<string, Buffer> {
  const header = decodeBlockHeader(block)!
  expect(header.totalBytes).toBe(block.length)
  expect(isIntactBlock(block)).toBe(true)
  const raw = decompressBlock(blockPayload(block, header), header.codec, header.rawBytes)
  let at = 0
  return new Map(
    blockObjects(block, header).map(({ id, kind, length }) => {
      expect(kind).toBe(OBJECT.data)
      at += length
      return [id, raw.subarray(at - length, at)]
    }),
  )
}

const allObjects = (blocks: Buffer[]) => new Map(blocks.flatMap(block => [...unpack(block)]))
const codecOf = (block: Buffer) => decodeBlockHeader(block)!.codec

/** Deterministic bytes that do not compress. */
function noise(bytes: number, seed = 1): Buffer {
  const out = Buffer.alloc(bytes)
  let state = seed
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    out[i] = state >>> 24
  }
  return out
}

function makeFiles(): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (let i = 0; i < 300; i++) {
    const content = i % 7 === 0 ? noise(i * 41, i + 1) : Buffer.from(`line ${i % 13}\n`.repeat(i * 3))
    files.set(`d${i % 5}/f${i}`, content)
  }
  for (let i = 0; i < 5; i++) fs.mkdirSync(join(directory, `d${i}`))
  for (const [name, content] of files) fs.writeFileSync(join(directory, name), content)
  return files
}

describe('entries', () => {
  it.each([
    ['compressed', blockParameters()[0]!],
    ['compressed without further parameters', blockParameters()[1]!],
    ['as they are', none],
  ])('end in blocks that anybody can read: %s', async (_name, zstd) => {
    const files = makeFiles()
    const ingest = open({ zstd, blockBytes: 64 * 1024 })
    const names = [...files.keys()]
    const reads = await Promise.all([0, 1, 2].map(part => ingest.read(names.slice(part * 100, part * 100 + 100))))
    await ingest.flush()
    expect(reads.map(({ errno, meta }) => [errno, meta.length / META.size_])).toEqual([
      [0, 100],
      [0, 100],
      [0, 100],
    ])
    expect(ingest.blocks.length).toBeGreaterThan(3)
    const objects = allObjects(ingest.blocks)
    for (const content of files.values()) expect(objects.get(hashBytes(content))?.equals(content)).toBe(true)
    expect(ingest.blocks.some(block => codecOf(block) === CODEC.zstd)).toBe(zstd.length > 0)
    // What node:zlib makes of them, where there is no other zstd, is the same.
    const packed = allObjects(ingest.blocks.map(packBlock))
    expect([...packed.keys()].sort()).toEqual([...objects.keys()].sort())
    for (const [id, bytes] of objects) expect(packed.get(id)!.equals(bytes)).toBe(true)
  })

  it('stays as it is when compressing gains nothing, and packs well when it does', async () => {
    fs.writeFileSync(join(directory, 'noise'), noise(100_000))
    fs.writeFileSync(join(directory, 'text'), 'the same again\n'.repeat(10_000))
    for (const [name, codec] of [
      ['noise', CODEC.stored],
      ['text', CODEC.zstd],
    ] as const) {
      const ingest = open()
      await ingest.read([name])
      await ingest.flush()
      expect(ingest.blocks.map(codecOf)).toEqual([codec])
      expect(codecOf(packBlock(ingest.blocks[0]!))).toBe(codec)
    }
  })

  it('is reported as readEntries does, whatever it is', async () => {
    fs.writeFileSync(join(directory, 'file'), 'content')
    fs.writeFileSync(join(directory, 'empty'), '')
    fs.writeFileSync(join(directory, 'big'), noise(MAX_CONTENT + 1))
    fs.symlinkSync('somewhere else', join(directory, 'link'))
    fs.mkdirSync(join(directory, 'dir'))
    execFileSync('mkfifo', [join(directory, 'fifo')])
    const paths = ['big', 'dir', 'empty', 'fifo', 'file', 'link', 'missing', '../outside', '']
    const out = Buffer.alloc(4 * MAX_CONTENT)
    const expected = addon.readEntries(root, Buffer.from(paths.join('\0')), out, MAX_CONTENT, 2)
    expect(expected.done).toBe(paths.length)
    const ingest = open()
    const { meta, extra } = await ingest.read(paths)
    for (let i = 0; i < paths.length; i++) {
      const part = (from: Buffer, start: number, end: number) =>
        from.subarray(i * META.size_ + start, i * META.size_ + end)
      expect([paths[i], part(meta, 0, META.contentOffset)]).toEqual([
        paths[i],
        part(expected.meta, 0, META.contentOffset),
      ])
      expect([paths[i], part(meta, META.rdevMajor, META.size_)]).toEqual([
        paths[i],
        part(expected.meta, META.rdevMajor, META.size_),
      ])
    }
    const at = paths.indexOf('link') * META.size_
    const target = extra.subarray(
      meta.readUInt32LE(at + META.contentOffset),
      meta.readUInt32LE(at + META.contentOffset) + meta.readUInt32LE(at + META.contentLength),
    )
    expect(String(target)).toBe('somewhere else')
    await ingest.flush()
    // Nothing but the regular files that were read.
    expect([...allObjects(ingest.blocks).values()].map(String).sort()).toEqual(['', 'content'])
  })

  it('carries xattrs, each with its own', async ctx => {
    fs.writeFileSync(join(directory, 'a'), 'a')
    fs.writeFileSync(join(directory, 'b'), 'b')
    const encoded = (value: string) =>
      Buffer.from(`\x06\x00user.k${String.fromCharCode(value.length)}\0\0\0${value}`, 'latin1')
    if (addon.setXattrs(root, 'a', encoded('one')) !== 0) return ctx.skip('no user xattrs on this filesystem')
    addon.setXattrs(root, 'b', encoded('another'))
    const { meta, extra } = await open().read(['a', 'b'])
    const xattrs = [0, META.size_].map(at => {
      const start = meta.readUInt32LE(at + META.xattrOffset)
      return extra.subarray(start, start + meta.readUInt32LE(at + META.xattrLength))
    })
    expect(xattrs.map(bytes => bytes.includes('one'))).toEqual([true, false])
    expect(xattrs.map(bytes => bytes.includes('another'))).toEqual([false, true])
  })

  it('finds more room when files have grown since they were looked at', async () => {
    const contents = Array.from({ length: 6 }, (_, i) => noise(900_000, i + 1))
    for (const [i, content] of contents.entries()) fs.writeFileSync(join(directory, `f${i}`), content)
    const ingest = open()
    const paths = contents.map((_, i) => `f${i}`)
    const { errno, meta } = await ingest.read(paths, 10)
    expect([errno, meta.length / META.size_]).toEqual([0, 6])
    await ingest.flush()
    const objects = allObjects(ingest.blocks)
    for (const content of contents) expect(objects.get(hashBytes(content))?.equals(content)).toBe(true)
  })

  it('is stored only when it is wanted', async () => {
    makeFiles()
    const ingest = open({ wants: false })
    await ingest.read(['d1/f1', 'd2/f2'])
    await ingest.flush()
    await ingest.flush()
    expect(ingest.blocks).toEqual([])
  })

  it('that does not hold still is marked, and no content of it is stored', async () => {
    const file = join(directory, 'log')
    fs.writeFileSync(file, 'x')
    const writer = spawnWriter(file)
    try {
      await writer.writes
      const ingest = open()
      let stable = 0
      // On a busy machine the writer may rest for as long as a read takes.
      for (let unstable = 0; unstable < 3; ) {
        const { meta } = await ingest.read(['log'])
        if (meta.readUInt32LE(META.flags) & META_FLAG.unstable) unstable++
        else stable++
      }
      await ingest.flush()
      const stored = ingest.blocks.reduce((sum, block) => sum + decodeBlockHeader(block)!.count, 0)
      expect(stored).toBe(stable)
    } finally {
      await writer.stop()
    }
  })
})

/** A thread that writes to the file all the time. */
function spawnWriter(file: string) {
  const code = `const fs = require('node:fs'); const { parentPort, workerData } = require('node:worker_threads')
    const fd = fs.openSync(workerData, 'r+'); const bytes = Buffer.alloc(65536, 7)
    for (let i = 0; ; i++) { fs.writeSync(fd, bytes, 0, bytes.length, 0); if (i === 10) parentPort.postMessage('') }`
  const worker = new Worker(code, { eval: true, workerData: file })
  return {
    writes: new Promise(resolve => worker.once('message', resolve)),
    stop: () => worker.terminate(),
  }
}

describe('windows of a large file', () => {
  it('are cut as `chunk` cuts them, named and hashed', async () => {
    const content = noise(300_000)
    fs.writeFileSync(join(directory, 'large'), content)
    const fd = addon.openAt(root, 'large', fs.constants.O_RDONLY, 0)
    const ingest = open()
    const hasher = new Hasher()
    const ends: number[] = []
    for (let at = 0; at < content.length; ) {
      const length = Math.min(50_000, content.length - at)
      const { errno, meta, extra } = await ingest.window(fd, at, length, at + length === content.length, hasher)
      expect(errno).toBe(0)
      extra.copy(hasher.state)
      for (let i = 0; i < meta.length; i += META.size_) {
        const end = at + meta.readUInt32LE(i + META.contentLength)
        expect(meta.toString('latin1', i + META.id, i + META.id + 32)).toBe(hashBytes(content.subarray(at, end)))
        ends.push(end)
        at = end
      }
    }
    addon.close(fd)
    await ingest.flush()
    expect(ends).toEqual([...addon.chunk(content, 0, content.length, 1024, 4096, 16_384, true)])
    expect(hasher.digest()).toBe(hashBytes(content))
    const objects = allObjects(ingest.blocks)
    let start = 0
    for (const end of ends) {
      const chunk = content.subarray(start, end)
      expect(objects.get(hashBytes(chunk))?.equals(chunk)).toBe(true)
      start = end
    }
  })

  it('are only hashed when there are no limits', async () => {
    const content = noise(100_000)
    fs.writeFileSync(join(directory, 'large'), content)
    const fd = addon.openAt(root, 'large', fs.constants.O_RDONLY, 0)
    const hasher = new Hasher()
    const { meta, extra } = await open().window(fd, 0, content.length, true, hasher, none)
    extra.copy(hasher.state)
    addon.close(fd)
    expect([meta.length, hasher.digest()]).toEqual([0, hashBytes(content)])
  })

  it('of a file that became shorter have no hash, of a directory an error', async () => {
    fs.writeFileSync(join(directory, 'short'), noise(1000))
    const short = addon.openAt(root, 'short', fs.constants.O_RDONLY, 0)
    const itself = addon.openAt(root, '', fs.constants.O_RDONLY, 0)
    const ingest = open()
    const read = await ingest.window(short, 0, 1001, true, new Hasher())
    expect([read.errno, read.meta.length, read.extra.length]).toEqual([0, 0, 0])
    expect((await ingest.window(itself, 0, 10, true, new Hasher())).errno).toBe(21)
    addon.close(short)
    addon.close(itself)
  })
})

describe('an ingest', () => {
  const codeOf = (action: () => unknown) => {
    try {
      action()
    } catch (error) {
      return errnoOf(error) ?? (error as NodeJS.ErrnoException).code
    }
    return undefined
  }

  it('refuses what makes no sense', () => {
    const { native } = open()
    const settings = { threads: 2, blockBytes: 1000, nice: 0, worthwhile: 0.97 }
    const wrong = addon as unknown as Record<string, (...values: unknown[]) => unknown>
    expect(codeOf(() => addon.ingestStore(native, 77, none))).toBe('EINVAL')
    expect(codeOf(() => addon.ingestNew({ ...settings, threads: 0 }, none, () => {}))).toBe('EINVAL')
    expect(codeOf(() => addon.ingestNew({ ...settings, blockBytes: 1e12 }, none, () => {}))).toBe('EINVAL')
    expect(codeOf(() => addon.ingestNew({ ...settings, nice: 20 }, none, () => {}))).toBe('EINVAL')
    expect(codeOf(() => addon.ingestNew(settings, Buffer.alloc(3), () => {}))).toBe('EINVAL')
    // A parameter that zstd does not have.
    expect(codeOf(() => addon.ingestNew(settings, Buffer.from(Int32Array.of(9, 9).buffer), () => {}))).toBe(
      'EOPNOTSUPP',
    )
    for (const values of [[settings, none, 'function'], [{}, none, () => {}], [settings], [1, none, () => {}]])
      expect(codeOf(() => wrong.ingestNew!(...values))).toBe('ERR_INVALID_ARG_TYPE')
    expect(codeOf(() => wrong.ingestFlush!({}))).toBe('ERR_INVALID_ARG_TYPE')
    expect(codeOf(() => addon.ingestWindow(native, 1, 0, 0, 10, true, Buffer.alloc(4), none))).toBe(
      'ERR_INVALID_ARG_VALUE',
    )
    expect(codeOf(() => addon.ingestWindow(native, 1, 0, 0, 0, true, new Hasher().state, none))).toBe('EINVAL')
    expect(codeOf(() => addon.ingestWindow(native, 1, 0, 0, 9, true, new Hasher().state, Buffer.alloc(12)))).toBe(
      'EINVAL',
    )
  })

  it('its threads stand back behind others by so much, and nobody else does', async () => {
    const niceOf = (name: string) =>
      fs
        .readdirSync('/proc/self/task')
        .map(task => fs.readFileSync(`/proc/self/task/${task}/stat`, 'latin1').split(') '))
        .filter(([start]) => start!.includes('(savepoint-pack') === (name === 'pack'))
        .map(([, rest]) => Number(rest!.split(' ')[16]))
    const others = new Set(niceOf('others'))
    const native = addon.ingestNew({ threads: 2, blockBytes: 1000, nice: 5, worthwhile: 0.97 }, none, () => {})
    // From where this process is, which may itself stand back.
    const wanted = os.getPriority() + 5
    await vi.waitUntil(() => niceOf('pack').join() === [wanted, wanted].join())
    expect(new Set(niceOf('others'))).toEqual(others)
    addon.ingestClose(native)
  })

  it('does nothing any more once it is closed, also in the middle of its work', async () => {
    const files = makeFiles()
    const events: number[] = []
    const settings = { threads: 2, blockBytes: 1000, nice: 0, worthwhile: 0.97 }
    const native = addon.ingestNew(settings, none, kind => events.push(kind))
    const paths = Buffer.from([...files.keys()].join('\0'))
    const before = fs.readdirSync('/proc/self/task').length
    for (let batch = 1; batch <= 50; batch++) addon.ingestRead(native, batch, root, paths, 1, MAX_CONTENT, 0)
    addon.ingestClose(native)
    addon.ingestClose(native)
    expect(fs.readdirSync('/proc/self/task').length).toBeLessThan(before)
    await new Promise(resolve => setImmediate(resolve))
    expect(events).toEqual([])
    expect(codeOf(() => addon.ingestRead(native, 51, root, paths, 1, MAX_CONTENT, 0))).toBe('EBADF')
    expect(codeOf(() => addon.ingestFlush(native))).toBe('EBADF')
  })

  const busy = `const native = addon.ingestNew({ threads: 2, blockBytes: 5000, nice: 0, worthwhile: 0.97 }, Buffer.alloc(0), (kind, batch) => {
      if (kind === 0) { addon.ingestStore(native, batch, Buffer.alloc(300, 1)); again() } else if (++blocks === 20) done() })
    let blocks = 0, batch = 0
    const again = () => addon.ingestRead(native, ++batch, root, paths, 1000, 1048576, 0)
    for (let i = 0; i < 10; i++) again()`
  const prelude = `const addon = require(process.env.ADDON), root = addon.openRoot(Buffer.from(process.env.DIRECTORY))
    const paths = Buffer.from(process.env.PATHS)`

  const environment = (file: string, files: Map<string, Buffer>) => ({
    ...process.env,
    ADDON: file,
    DIRECTORY: directory,
    PATHS: [...files.keys()].join('\n'),
  })
  const script = (end: string) => `${prelude.replace('process.env.PATHS', "process.env.PATHS.replaceAll('\\n', '\\0')")}
    const done = () => { ${end} }
    ${busy}`

  it.each([
    ['the process', 'process.exit(7)', 7],
    ['everything else', 'addon.ingestClose(native)', 0],
  ])('does not hinder the end of %s', (_name, end, code) => {
    const { status, signal, stderr } = spawnSync(process.execPath, ['-e', script(end)], {
      env: environment(addonFile, makeFiles()),
      timeout: 60_000,
      encoding: 'utf8',
    })
    expect([status, signal, stderr]).toEqual([code, null, ''])
  })

  it('ends with its worker thread', async () => {
    const code = script("require('node:worker_threads').parentPort.postMessage('')")
    const worker = new Worker(code, { eval: true, env: environment(addonFile, makeFiles()) as Record<string, string> })
    await new Promise(resolve => worker.once('message', resolve))
    const busyThreads = fs.readdirSync('/proc/self/task').length
    await worker.terminate()
    expect(fs.readdirSync('/proc/self/task').length).toBeLessThan(busyThreads)
  })

  it('touches no memory that is not its own', ctx => {
    const library = execFileSync('cc', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).trim()
    if (!fs.existsSync(library)) return ctx.skip('the compiler has no address sanitizer')
    const file = join(directory, 'checked.node')
    const flags = '-g -fsanitize=address,undefined -fno-sanitize-recover=undefined'
    execFileSync('sh', [join(packageRoot, 'scripts/build-addon.sh'), file], { env: { ...process.env, CFLAGS: flags } })
    const options = { LD_PRELOAD: library, ASAN_OPTIONS: 'detect_leaks=0', UBSAN_OPTIONS: 'print_stacktrace=1' }
    for (const end of ['addon.ingestClose(native)', 'process.exit(0)']) {
      const env = { ...environment(file, makeFilesOnce()), ...options }
      const { status, signal, stderr } = spawnSync(process.execPath, ['-e', script(end)], {
        env,
        timeout: 120_000,
        encoding: 'utf8',
      })
      expect([status, signal, stderr]).toEqual([0, null, ''])
    }
  })

  function makeFilesOnce(): Map<string, Buffer> {
    if (!fs.existsSync(join(directory, 'd0'))) return makeFiles()
    const names = fs.readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    return new Map(
      names
        .map(entry => join(entry.parentPath, entry.name).slice(directory.length + 1))
        .filter(name => name.includes('/'))
        .map(name => [name, none]),
    )
  }
})
