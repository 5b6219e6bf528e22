import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { constants as osConstants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Addon, addon, META, META_FLAG, RECORD, RECORD_FLAG, SCAN_HEADER, SPAN } from './addon.ts'

const { EACCES, EAGAIN, EBADF, EEXIST, EFBIG, EINVAL, ELOOP, ENOENT, ENOTDIR } = osConstants.errno
const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_WRONLY } = fs.constants
const S_IFMT = 0o170000
const packageRoot = fileURLToPath(new URL('../../', import.meta.url))
const addonFile = join(packageRoot, 'build/savepoint.node')
const isRoot = process.getuid!() === 0
const scratch = fs.mkdtempSync(join(tmpdir(), 'savepoint-addon-'))

let directory: string
let root: number

beforeEach(() => {
  directory = fs.mkdtempSync(join(scratch, 't'))
  root = addon.openRoot(Buffer.from(directory))
})
afterEach(() => addon.close(root))
// Not fs.rm: it cannot remove paths longer than PATH_MAX.
afterAll(() => execFileSync('rm', ['-rf', scratch]))

/** The same sources without openat2 and fchmodat2, as on an old kernel or in a sandbox that refuses them. */
function loadFallback(): Addon {
  const file = join(scratch, 'fallback.node')
  const env = { ...process.env, CFLAGS: '-DSAVEPOINT_FORCE_FALLBACK' }
  execFileSync('sh', [join(packageRoot, 'scripts/build-addon.sh'), file], { env })
  return createRequire(import.meta.url)(file) as Addon
}
const builds: [string, Addon][] = [
  ['with openat2', addon],
  ['without openat2', loadFallback()],
]

const inside = (name: string | Buffer) => Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name)])
const list = (...paths: (string | Buffer)[]) =>
  Buffer.concat(paths.flatMap((path, i) => [Buffer.from(i === 0 ? '' : '\0'), Buffer.from(path)]))

interface Entry {
  name: Buffer
  mode: number
  nlink: number
  uid: number
  gid: number
  size: bigint
  mtimeNs: bigint
  ctimeNs: bigint
  ino: bigint
  rdevMajor: number
  rdevMinor: number
  flags: number
}

function parseScan(result: Buffer): { errno: number; entries: Entry[] }[] {
  const directories = []
  for (let at = 0; at < result.length; ) {
    const bytes = result.readUInt32LE(at + SCAN_HEADER.bytes)
    const count = result.readUInt32LE(at + SCAN_HEADER.count)
    const errno = result.readInt32LE(at + SCAN_HEADER.errno)
    at += SCAN_HEADER.size
    const end = at + bytes
    const entries: Entry[] = []
    for (; at < end; at += RECORD.name + result.readUInt16LE(at + RECORD.nameLength)) {
      entries.push({
        name: Buffer.from(result.subarray(at + RECORD.name, at + RECORD.name + result.readUInt16LE(at))),
        mode: result.readUInt16LE(at + RECORD.mode),
        nlink: result.readUInt32LE(at + RECORD.nlink),
        uid: result.readUInt32LE(at + RECORD.uid),
        gid: result.readUInt32LE(at + RECORD.gid),
        size: result.readBigUInt64LE(at + RECORD.size),
        mtimeNs: result.readBigInt64LE(at + RECORD.mtimeNs),
        ctimeNs: result.readBigInt64LE(at + RECORD.ctimeNs),
        ino: result.readBigUInt64LE(at + RECORD.ino),
        rdevMajor: result.readUInt32LE(at + RECORD.rdevMajor),
        rdevMinor: result.readUInt32LE(at + RECORD.rdevMinor),
        flags: result.readUInt8(at + RECORD.flags),
      })
    }
    expect(at).toBe(end)
    expect(entries).toHaveLength(count)
    directories.push({ errno, entries })
  }
  return directories
}

const scan = async (...paths: (string | Buffer)[]) => parseScan(await addon.scanDirs(root, list(...paths)))

function parseMeta(meta: Buffer, index: number) {
  const at = index * META.size_
  return {
    errno: meta.readInt32LE(at + META.errno),
    flags: meta.readUInt32LE(at + META.flags),
    mode: meta.readUInt32LE(at + META.mode),
    nlink: meta.readUInt32LE(at + META.nlink),
    uid: meta.readUInt32LE(at + META.uid),
    gid: meta.readUInt32LE(at + META.gid),
    size: meta.readBigUInt64LE(at + META.size),
    mtimeNs: meta.readBigInt64LE(at + META.mtimeNs),
    ctimeNs: meta.readBigInt64LE(at + META.ctimeNs),
    ino: meta.readBigUInt64LE(at + META.ino),
    contentOffset: meta.readUInt32LE(at + META.contentOffset),
    contentLength: meta.readUInt32LE(at + META.contentLength),
    xattrOffset: meta.readUInt32LE(at + META.xattrOffset),
    xattrLength: meta.readUInt32LE(at + META.xattrLength),
    rdevMajor: meta.readUInt32LE(at + META.rdevMajor),
    rdevMinor: meta.readUInt32LE(at + META.rdevMinor),
    btimeNs: meta.readBigInt64LE(at + META.btimeNs),
    dev: meta.readBigUInt64LE(at + META.dev),
  }
}

interface ReadOptions {
  outBytes?: number
  maxContent?: number
  retries?: number
  from?: number
}

function read(
  paths: (string | Buffer)[],
  { outBytes = 1 << 20, maxContent = 1 << 20, retries = 3, from = root }: ReadOptions = {},
) {
  const out = Buffer.alloc(outBytes, 0xee)
  const { done, meta } = addon.readEntries(from, list(...paths), out, maxContent, retries)
  expect(meta).toHaveLength(done * META.size_)
  return Array.from({ length: done }, (_, i) => {
    const result = parseMeta(meta, i)
    return {
      ...result,
      content: Buffer.from(out.subarray(result.contentOffset, result.contentOffset + result.contentLength)),
      xattrs: decodeXattrs(out.subarray(result.xattrOffset, result.xattrOffset + result.xattrLength)),
    }
  })
}

type Xattrs = Record<string, Buffer>

function encodeXattrs(xattrs: Xattrs): Buffer {
  return Buffer.concat(
    Object.entries(xattrs).flatMap(([name, value]) => {
      const lengths = [Buffer.alloc(2), Buffer.alloc(4)] as const
      lengths[0].writeUInt16LE(name.length)
      lengths[1].writeUInt32LE(value.length)
      return [lengths[0], Buffer.from(name), lengths[1], value]
    }),
  )
}

/** Without the labels that a security module may put on everything. */
function decodeXattrs(encoded: Buffer): Xattrs {
  const xattrs: Xattrs = {}
  let previous = ''
  for (let at = 0; at < encoded.length; ) {
    const name = encoded.toString('latin1', at + 2, at + 2 + encoded.readUInt16LE(at))
    at += 2 + name.length
    const value = Buffer.from(encoded.subarray(at + 4, at + 4 + encoded.readUInt32LE(at)))
    at += 4 + value.length
    expect(name > previous).toBe(true)
    previous = name
    if (!name.startsWith('security.')) xattrs[name] = value
  }
  return xattrs
}

interface FileSpec {
  path: string | Buffer
  content?: Buffer
  mode?: number
  uid?: number
  gid?: number
  mtimeNs?: bigint
  xattrs?: Buffer
  sparse?: boolean
}

function encodeSpecs(files: FileSpec[]): { spec: Buffer; data: Buffer } {
  const specs: Buffer[] = []
  const data: Buffer[] = []
  let offset = 0
  for (const file of files) {
    const path = Buffer.from(file.path)
    const content = file.content ?? Buffer.alloc(0)
    const xattrs = file.xattrs ?? Buffer.alloc(0)
    const fixed = Buffer.alloc(40)
    fixed.writeUInt16LE(path.length, 0)
    fixed.writeUInt16LE(file.sparse ? 1 : 0, 2)
    fixed.writeUInt32LE(file.mode ?? 0o644, 4)
    fixed.writeUInt32LE(file.uid ?? process.getuid!(), 8)
    fixed.writeUInt32LE(file.gid ?? process.getgid!(), 12)
    fixed.writeBigInt64LE(file.mtimeNs ?? 1_700_000_000_123_456_789n, 16)
    fixed.writeUInt32LE(offset, 24)
    fixed.writeUInt32LE(content.length, 28)
    fixed.writeUInt32LE(offset + content.length, 32)
    fixed.writeUInt32LE(xattrs.length, 36)
    offset += content.length + xattrs.length
    specs.push(fixed, path)
    data.push(content, xattrs)
  }
  return { spec: Buffer.concat(specs), data: Buffer.concat(data) }
}

function write(files: FileSpec[], using = addon) {
  const { spec, data } = encodeSpecs(files)
  const meta = using.writeFiles(root, spec, data)
  expect(meta).toHaveLength(files.length * META.size_)
  return files.map((_, i) => parseMeta(meta, i))
}

function errorOf(action: () => unknown): NodeJS.ErrnoException {
  try {
    action()
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  throw new Error('nothing was thrown')
}
const codeOf = (action: () => unknown) => errorOf(action).code

const openDescriptors = () => fs.readdirSync('/proc/self/fd').length

/** Whether this filesystem has user xattrs. */
function userXattrs(): boolean {
  fs.writeFileSync(inside('probe'), '')
  const refused = addon.setXattrs(root, 'probe', encodeXattrs({ 'user.probe': Buffer.from('1') }))
  fs.unlinkSync(inside('probe'))
  return refused === 0
}

/** Runs `body` (an ES module that finds the addon as `addon`) in a child, as an unprivileged user when we are root. */
function runUnprivileged(body: string): unknown {
  if (isRoot) {
    fs.chmodSync(scratch, 0o755)
    fs.chownSync(directory, 65534, 65534)
  }
  // The addon is copied: the checkout may lie where others cannot look.
  const copy = join(scratch, 'unprivileged.node')
  fs.copyFileSync(addonFile, copy)
  fs.chmodSync(copy, 0o755)
  const code = `import { createRequire } from 'node:module'
    const addon = createRequire('file:///')(${JSON.stringify(copy)})
    const root = addon.openRoot(Buffer.from(${JSON.stringify(directory)}))
    ${body}`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: '/',
    encoding: 'utf8',
    ...(isRoot ? { uid: 65534, gid: 65534 } : {}),
  })
  if (child.status !== 0) throw new Error(child.stderr || String(child.error))
  return JSON.parse(child.stdout)
}

describe('scanDirs', () => {
  it('does not repeat the records that the caller knows', async () => {
    for (const name of ['same', 'other', 'empty']) fs.mkdirSync(inside(name))
    fs.writeFileSync(inside('same/file'), 'a')
    fs.writeFileSync(inside('other/file'), 'a')
    const paths = list('same', 'other', 'empty', 'missing')
    const first = await addon.scanDirs(root, paths)
    const spans = Buffer.alloc(4 * SPAN.size, 0xff)
    const known: { at: number; bytes: number }[] = []
    for (let at = 0; at < first.length; ) {
      const bytes = first.readUInt32LE(at + SCAN_HEADER.bytes)
      known.push({ at: at + SCAN_HEADER.size, bytes })
      at += SCAN_HEADER.size + bytes
    }
    known.forEach(({ at, bytes }, i) => {
      spans.writeUInt32LE(at, i * SPAN.size + SPAN.offset)
      spans.writeUInt32LE(bytes, i * SPAN.size + SPAN.length)
    })
    fs.writeFileSync(inside('other/file'), 'ab')
    const same = (scan: Buffer) => {
      const flags: number[] = []
      for (let at = 0; at < scan.length; at += SCAN_HEADER.size + scan.readUInt32LE(at + SCAN_HEADER.bytes))
        flags.push(scan.readUInt32LE(at + SCAN_HEADER.same))
      return flags
    }
    const again = await addon.scanDirs(root, paths, first, spans)
    expect(same(again)).toEqual([1, 0, 1, 0])
    expect(again.length).toBe(4 * SCAN_HEADER.size + known[1]!.bytes)
    // Spans that are missing or point outside tell nothing.
    expect(same(await addon.scanDirs(root, paths, first, spans.subarray(0, 3)))).toEqual([0, 0, 0, 0])
    spans.writeUInt32LE(0xffff_fff0, SPAN.offset)
    expect(same(await addon.scanDirs(root, paths, first, spans))).toEqual([0, 0, 1, 0])
  })

  it('gives what lstat gives', async () => {
    const name = fc
      .uint8Array({ minLength: 1, maxLength: 24 })
      .map(bytes => Buffer.from(bytes.map(byte => (byte === 0 || byte === 47 ? 65 : byte))))
      .filter(bytes => !['.', '..'].includes(bytes.toString('latin1')))
    const kind = fc.oneof(fc.nat({ max: 9000 }), fc.constant('directory' as const), fc.constant('link' as const))
    const entry = fc.record({ name, kind, mode: fc.nat({ max: 0o777 }) })
    const tree = fc.uniqueArray(entry, { maxLength: 40, selector: item => item.name.toString('latin1') })
    let run = 0
    await fc.assert(
      fc.asyncProperty(tree, async items => {
        const folder = `run${run++}`
        fs.mkdirSync(inside(folder))
        const path = (item: { name: Buffer }) => Buffer.concat([inside(folder), Buffer.from('/'), item.name])
        for (const item of items) {
          if (item.kind === 'directory') fs.mkdirSync(path(item))
          else if (item.kind === 'link') fs.symlinkSync('nowhere', path(item))
          else fs.writeFileSync(path(item), Buffer.alloc(item.kind))
          if (item.kind !== 'link') fs.chmodSync(path(item), item.mode)
        }
        const [result] = await scan(folder)
        expect(result!.errno).toBe(0)
        const sorted = items.toSorted((a, b) => Buffer.compare(a.name, b.name))
        expect(result!.entries).toEqual(
          sorted.map(item => {
            const status = fs.lstatSync(path(item), { bigint: true })
            const isDirectory = status.isDirectory()
            return {
              name: item.name,
              mode: Number(status.mode),
              nlink: isDirectory ? 0 : Number(status.nlink),
              uid: Number(status.uid),
              gid: Number(status.gid),
              size: isDirectory ? 0n : status.size,
              mtimeNs: isDirectory ? 0n : status.mtimeNs,
              ctimeNs: status.ctimeNs,
              ino: status.ino,
              rdevMajor: 0,
              rdevMinor: 0,
              flags: 0,
            }
          }),
        )
      }),
      { numRuns: 30 },
    )
  })

  it('sorts by bytes, a name before its extensions, and tells equal first eight bytes apart', async () => {
    const names = ['a', 'aa', 'a.', 'A', 'abcdefgh', 'abcdefghi', 'abcdefgh0', 'ab\xff', 'ab', 'é', '~', '-'].map(
      name => Buffer.from(name, 'latin1'),
    )
    for (const name of names) fs.writeFileSync(inside(name), '')
    const [result] = await scan('')
    expect(result!.entries.map(entry => entry.name)).toEqual(names.toSorted(Buffer.compare))
  })

  it('keeps names of any bytes and any length', async () => {
    const names = [Buffer.from([0xff, 0xfe, 0x80]), Buffer.from('a\nb'), Buffer.alloc(255, 'n'), Buffer.from(' "\\\t')]
    for (const name of names) fs.writeFileSync(inside(name), 'x')
    const [result] = await scan('')
    expect(result!.entries.map(entry => entry.name)).toEqual(names.toSorted(Buffer.compare))
    expect(read(names).map(entry => [entry.errno, String(entry.content)])).toEqual(names.map(() => [0, 'x']))
  })

  it('lists a directory with more entries than one getdents buffer holds', async () => {
    const names = Array.from({ length: 6000 }, (_, i) => `${String(i).padStart(6, '0')}-${'x'.repeat(80)}`)
    for (const name of names) fs.writeFileSync(inside(name), '')
    const [result] = await scan('')
    expect(result!.entries.map(entry => String(entry.name))).toEqual(names)
  })

  it('answers per directory, in order, with the errno of one that it cannot list', async () => {
    fs.mkdirSync(inside('a/b'), { recursive: true })
    fs.writeFileSync(inside('a/file'), '')
    fs.symlinkSync('a', inside('link'))
    const results = await scan('a', 'missing', 'a/file', 'link', 'link/b', 'a/b', '../x', '')
    expect(results.map(result => result.errno)).toEqual([0, ENOENT, ENOTDIR, ENOTDIR, ELOOP, 0, EINVAL, 0])
    expect(results.map(result => result.entries.map(entry => String(entry.name)))).toEqual([
      ['b', 'file'],
      [],
      [],
      [],
      [],
      [],
      [],
      ['a', 'link'],
    ])
  })

  it('lists FIFOs, sockets and devices without touching them', async () => {
    addon.mknodAt(root, 'fifo', fs.constants.S_IFIFO | 0o600, 0, 0)
    const [result] = await scan('')
    expect(result!.entries[0]!.mode & S_IFMT).toBe(fs.constants.S_IFIFO)
    const devices = addon.openRoot(Buffer.from('/dev'))
    const [found] = parseScan(await addon.scanDirs(devices, Buffer.alloc(0)))
    addon.close(devices)
    const zero = found!.entries.find(entry => entry.name.equals(Buffer.from('zero')))!
    expect([zero.mode & S_IFMT, zero.rdevMajor, zero.rdevMinor]).toEqual([fs.constants.S_IFCHR, 1, 5])
  })

  it('gives type and errno of entries in a directory that may be read but not searched', () => {
    fs.mkdirSync(inside('closed'))
    fs.writeFileSync(inside('closed/file'), '')
    if (isRoot) fs.chownSync(inside('closed'), 65534, 65534)
    fs.chmodSync(inside('closed'), 0o400)
    const result = runUnprivileged(`process.stdout.write(JSON.stringify(
      (await addon.scanDirs(root, Buffer.from('closed'))).toString('base64')))`) as string
    fs.chmodSync(inside('closed'), 0o700)
    const [scanned] = parseScan(Buffer.from(result, 'base64'))
    expect(scanned!.errno).toBe(0)
    const [entry] = scanned!.entries
    expect([String(entry!.name), entry!.mode, entry!.rdevMajor, entry!.flags]).toEqual([
      'file',
      fs.constants.S_IFREG,
      EACCES,
      RECORD_FLAG.statFailed,
    ])
  })

  it('flags a mount point', async ctx => {
    if (!isRoot) return ctx.skip('mounting needs root')
    fs.mkdirSync(inside('mounted'))
    fs.mkdirSync(inside('plain'))
    fs.writeFileSync(inside('file'), '')
    fs.mkdirSync(inside('bound'))
    if (spawnSync('mount', ['-t', 'tmpfs', 'none', `${directory}/mounted`]).status !== 0)
      return ctx.skip('this sandbox refuses mount')
    // A bind mount of the same filesystem has the same device: only the mount id gives it away.
    execFileSync('mount', ['--bind', `${directory}/plain`, `${directory}/bound`])
    try {
      fs.writeFileSync(inside('mounted/inner'), '')
      const [outer, inner] = await scan('', 'mounted')
      expect(outer!.entries.map(entry => [String(entry.name), entry.flags])).toEqual([
        ['bound', RECORD_FLAG.mountPoint],
        ['file', 0],
        ['mounted', RECORD_FLAG.mountPoint],
        ['plain', 0],
      ])
      expect(inner!.entries.map(entry => entry.flags)).toEqual([0])
    } finally {
      execFileSync('umount', [`${directory}/bound`])
      execFileSync('umount', [`${directory}/mounted`])
    }
  })

  it('outlives the caller closing its descriptor, and leaks none of its own', async () => {
    for (let i = 0; i < 200; i++) fs.mkdirSync(inside(`d${i}/e`), { recursive: true })
    const paths = list(
      ...Array.from({ length: 200 }, (_, i) => [`d${i}`, `d${i}/e`, `d${i}/none`, `none${i}/x`]).flat(),
    )
    const before = openDescriptors()
    const own = addon.openRoot(Buffer.from(directory))
    const pending = addon.scanDirs(own, paths)
    addon.close(own)
    expect(parseScan(await pending)).toHaveLength(800)
    expect(openDescriptors()).toBe(before)
  })

  it('rejects a descriptor that is not open', () => {
    expect(codeOf(() => addon.scanDirs(-1, Buffer.alloc(0)))).toBe('EBADF')
    expect(codeOf(() => addon.scanDirs(99999, Buffer.alloc(0)))).toBe('EBADF')
  })
})

describe('threads', () => {
  const code = `const { workerData, parentPort } = require('node:worker_threads')
    const addon = require(workerData.file)
    const root = addon.openRoot(Buffer.from(workerData.directory))
    addon.scanDirs(root, Buffer.alloc(0)).then(found => parentPort.postMessage(found))
    if (workerData.quit) process.exit(0)`

  it('loads in several workers at once, and a result can be posted', async () => {
    fs.writeFileSync(inside('file'), 'x')
    const found = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const worker = new Worker(code, { eval: true, workerData: { file: addonFile, directory } })
        const [message] = await once(worker, 'message')
        return Buffer.from(message as Uint8Array)
      }),
    )
    for (const result of found) expect(parseScan(result)[0]!.entries.map(entry => String(entry.name))).toEqual(['file'])
  })

  it('survives a worker that ends while a scan is under way', async () => {
    for (let i = 0; i < 8; i++) {
      const worker = new Worker(code, { eval: true, workerData: { file: addonFile, directory, quit: true } })
      expect(await once(worker, 'exit')).toEqual([0])
    }
  })
})

describe('readEntries', () => {
  it('reads content, link targets and status', () => {
    const content = randomBytes(10_000)
    fs.writeFileSync(inside('file'), content, { mode: 0o640 })
    fs.writeFileSync(inside('empty'), '')
    fs.symlinkSync(Buffer.from([0x2f, 0xff, 0x0a]), inside('link'))
    fs.mkdirSync(inside('dir'))
    const [file, empty, link, dir, top] = read(['file', 'empty', 'link', 'dir', ''])
    const status = fs.statSync(inside('file'), { bigint: true })
    expect(file).toMatchObject({
      errno: 0,
      flags: 0,
      mode: Number(status.mode),
      nlink: 1,
      uid: Number(status.uid),
      gid: Number(status.gid),
      size: 10_000n,
      mtimeNs: status.mtimeNs,
      ctimeNs: status.ctimeNs,
      ino: status.ino,
      dev: status.dev,
      xattrs: {},
    })
    expect(file!.content.equals(content)).toBe(true)
    if (file!.btimeNs !== 0n) expect(file!.btimeNs).toBe(status.birthtimeNs)
    expect(empty).toMatchObject({ errno: 0, flags: 0, contentLength: 0 })
    expect([...link!.content]).toEqual([0x2f, 0xff, 0x0a])
    expect(link!.mode & S_IFMT).toBe(fs.constants.S_IFLNK)
    expect([dir!.errno, dir!.mode & S_IFMT, dir!.contentLength]).toEqual([0, fs.constants.S_IFDIR, 0])
    expect(top!.ino).toBe(fs.statSync(directory, { bigint: true }).ino)
  })

  it('does not hang on a FIFO, a socket or a device', async () => {
    addon.mknodAt(root, 'fifo', fs.constants.S_IFIFO | 0o600, 0, 0)
    const server = createServer().listen(join(directory, 'socket'))
    await once(server, 'listening')
    const results = read(['fifo', 'socket'])
    server.close()
    expect(results.map(result => [result.errno, result.mode & S_IFMT, result.contentLength])).toEqual([
      [0, fs.constants.S_IFIFO, 0],
      [0, fs.constants.S_IFSOCK, 0],
    ])
    const devices = addon.openRoot(Buffer.from('/dev'))
    const [zero, random] = read(['zero', 'random'], { from: devices })
    addon.close(devices)
    expect([zero!.errno, zero!.contentLength, zero!.rdevMajor, zero!.rdevMinor]).toEqual([0, 0, 1, 5])
    expect([random!.errno, random!.contentLength, random!.rdevMinor]).toEqual([0, 0, 8])
  })

  it('gives each entry its errno and goes on', () => {
    fs.mkdirSync(inside('dir'))
    fs.symlinkSync('dir', inside('link'))
    fs.writeFileSync(inside('dir/file'), 'x')
    const errnos = read(['missing', 'link/file', '/etc/passwd', '../x', 'dir//file', 'dir/.', 'dir/file/x', 'dir/file'])
    expect(errnos.map(entry => entry.errno)).toEqual([ENOENT, ELOOP, EINVAL, EINVAL, EINVAL, EINVAL, ENOTDIR, 0])
    expect(read(['file'], { from: -100 })[0]!.errno).toBe(EBADF)
  })

  it('says EACCES, with the status, of a file that may not be read', () => {
    fs.writeFileSync(inside('secret'), 'x', { mode: 0 })
    if (isRoot) fs.chownSync(inside('secret'), 65534, 65534)
    const meta = runUnprivileged(`const out = Buffer.alloc(100)
      process.stdout.write(JSON.stringify(addon.readEntries(root, Buffer.from('secret'), out, 100, 0).meta.toString('base64')))`)
    const result = parseMeta(Buffer.from(meta as string, 'base64'), 0)
    expect([result.errno, result.mode]).toEqual([EACCES, fs.constants.S_IFREG])
  })

  it('stops when the next entry does not fit, and says EFBIG of one that never will', () => {
    for (const name of ['a', 'b', 'c']) fs.writeFileSync(inside(name), name.repeat(40))
    fs.writeFileSync(inside('big'), 'B'.repeat(101))
    const paths = ['a', 'b', 'c', 'big']
    const [a, b, ...none] = read(paths, { outBytes: 100 })
    expect([String(a!.content), String(b!.content), none]).toEqual(['a'.repeat(40), 'b'.repeat(40), []])
    const [c, big] = read(paths.slice(2), { outBytes: 100 })
    expect([c!.errno, big!.errno, big!.size]).toEqual([0, EFBIG, 101n])
    // An exact fit leaves no room for the byte that would show growth; it must do without.
    expect(read(['big'], { outBytes: 101 })[0]).toMatchObject({ errno: 0, flags: 0, contentLength: 101 })
    expect(read(['a', 'b'], { outBytes: 80 }).map(entry => entry.errno)).toEqual([0, 0])
    expect(read([''], { outBytes: 0 })[0]!.errno).toBe(0)
  })

  it('leaves out content above maxContent', ctx => {
    fs.writeFileSync(inside('big'), 'B'.repeat(101))
    const haveXattrs = userXattrs()
    if (haveXattrs) addon.setXattrs(root, 'big', encodeXattrs({ 'user.k': Buffer.from('v') }))
    const [big] = read(['big'], { maxContent: 100 })
    expect(big).toMatchObject({ errno: 0, flags: META_FLAG.tooBig, size: 101n, contentLength: 0 })
    expect(read(['big'], { maxContent: 101 })[0]).toMatchObject({ flags: 0, contentLength: 101 })
    if (!haveXattrs) return ctx.skip('no user xattrs on this filesystem')
    expect(big!.xattrs).toEqual({ 'user.k': Buffer.from('v') })
  })

  it('stops when xattrs do not fit, and says EFBIG when they never will', ctx => {
    if (!userXattrs()) return ctx.skip('no user xattrs on this filesystem')
    for (const name of ['a', 'b']) {
      fs.writeFileSync(inside(name), 'x'.repeat(10))
      addon.setXattrs(root, name, encodeXattrs({ 'user.k': Buffer.alloc(50) }))
    }
    expect(read(['a', 'b'], { outBytes: 100 })).toHaveLength(1)
    expect(read(['a', 'b'], { outBytes: 144 }).map(entry => entry.errno)).toEqual([0, 0])
    expect(read(['a', 'b'], { outBytes: 71 }).map(entry => entry.errno)).toEqual([EFBIG, EFBIG])
  })

  it('flags a file with a hole', ctx => {
    const fd = fs.openSync(inside('sparse'), 'w')
    fs.writeSync(fd, 'start')
    fs.ftruncateSync(fd, 1 << 19)
    fs.closeSync(fd)
    fs.writeFileSync(inside('dense'), Buffer.alloc(1 << 18, 1))
    if (fs.statSync(inside('sparse')).blocks * 512 >= 1 << 19) return ctx.skip('no sparse files on this filesystem')
    const [sparse, dense] = read(['sparse', 'dense'])
    expect([sparse!.flags, sparse!.contentLength, dense!.flags]).toEqual([META_FLAG.sparse, 1 << 19, 0])
    expect(sparse!.content.indexOf(Buffer.from([0]))).toBe(5)
  })

  const startWriter = async (step: string) => {
    const code = `import fs from 'node:fs'
      const fd = fs.openSync(process.argv[1], 'w')
      const pause = ms => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
      const fill = byte => Buffer.alloc(400_000, byte)
      const pages = Array.from({ length: 64 }, (_, i) => fill(i + 1))
      fs.writeSync(fd, pages[0], 0, 400_000, 0)
      process.stdout.write('ready')
      for (let i = 0; ; i++) { ${step} }`
    const writer = spawn(process.execPath, ['--input-type=module', '-e', code, join(directory, 'busy')])
    await once(writer.stdout, 'data')
    return writer
  }
  const isUniform = (content: Buffer) =>
    content.length === 0 || content.equals(Buffer.alloc(content.length, content[0]))

  it.each([
    ['overwrites it in place', 'fs.writeSync(fd, pages[i % 64], 0, 400_000, 0)'],
    ['truncates and writes it', 'fs.ftruncateSync(fd, 0); fs.writeSync(fd, pages[i % 64], 0, 400_000, 0)'],
    [
      'replaces it by rename',
      `fs.writeFileSync(process.argv[1] + '.new', pages[i % 64]); fs.renameSync(process.argv[1] + '.new', process.argv[1])`,
    ],
  ])(
    'never gives a torn file as stable while another process %s without a pause',
    async (_what, step) => {
      const writer = await startWriter(step)
      const results = Array.from({ length: 25 }, () => read(['busy'], { retries: 1 })[0]!)
      writer.kill('SIGKILL')
      await once(writer, 'exit')
      for (const result of results) {
        expect([0, EAGAIN]).toContain(result.errno)
        if ((result.flags & META_FLAG.unstable) === 0) expect(isUniform(result.content)).toBe(true)
      }
    },
    20_000,
  )

  it('finds the quiet moments of a file that is rewritten now and then', async () => {
    const writer = await startWriter('fs.writeSync(fd, pages[i % 64], 0, 400_000, 0); pause(40)')
    const results = Array.from({ length: 25 }, () => read(['busy'], { retries: 5 })[0]!)
    writer.kill('SIGKILL')
    await once(writer, 'exit')
    const stable = results.filter(result => result.flags === 0)
    expect(stable.length).toBeGreaterThan(12)
    for (const result of stable) expect(isUniform(result.content) && result.contentLength === 400_000).toBe(true)
  }, 20_000)

  it('waits out the clock tick of a file that has just been written', () => {
    for (let i = 0; i < 20; i++) {
      fs.writeFileSync(inside('fresh'), String(i))
      expect(read(['fresh'])[0]).toMatchObject({ errno: 0, flags: 0, content: Buffer.from(String(i)) })
    }
  })

  it('does not change the access time', () => {
    fs.writeFileSync(inside('file'), 'x')
    fs.utimesSync(inside('file'), 1, 2_000_000_000)
    read(['file'])
    expect(fs.statSync(inside('file')).atimeMs).toBe(1000)
  })
})

describe('writeFiles', () => {
  it('creates files with content, mode, mtime and status', () => {
    fs.mkdirSync(inside('d'))
    const content = randomBytes(5000)
    const long = Buffer.alloc(255, 0xfe)
    const files = [
      { path: 'd/a', content, mode: 0o600, mtimeNs: 1_234_567_890_987_654_321n },
      { path: 'd/old', mode: 0o444, mtimeNs: -1_500_000_001n },
      { path: long, content: Buffer.from('long') },
    ]
    const results = write(files)
    for (const [i, file] of files.entries()) {
      const status = fs.statSync(inside(file.path), { bigint: true })
      expect(results[i]).toMatchObject({
        errno: 0,
        flags: 0,
        mode: Number(status.mode),
        size: status.size,
        mtimeNs: status.mtimeNs,
        ctimeNs: status.ctimeNs,
        ino: status.ino,
        dev: status.dev,
        nlink: 1,
      })
    }
    expect(fs.readFileSync(inside('d/a')).equals(content)).toBe(true)
    expect(results.map(result => result.mtimeNs)).toEqual([
      1_234_567_890_987_654_321n,
      -1_500_000_001n,
      1_700_000_000_123_456_789n,
    ])
    expect(results.map(result => result.mode & 0o7777)).toEqual([0o600, 0o444, 0o644])
  })

  it('sets the exact mode whatever the umask', () => {
    const previous = process.umask(0o077)
    try {
      const modes = [0o777, 0o666, 0o4755, 0o2711, 0o1644, 0]
      const results = write(modes.map((mode, i) => ({ path: `f${i}`, mode })))
      expect(results.map(result => [result.errno, result.flags, result.mode & 0o7777])).toEqual(
        modes.map(mode => [0, 0, mode]),
      )
    } finally {
      process.umask(previous)
    }
  })

  it('never overwrites, never follows, and goes on after a failure', () => {
    fs.writeFileSync(inside('there'), 'old')
    fs.symlinkSync('target', inside('link'))
    const results = write([
      { path: 'there' },
      { path: 'link' },
      { path: 'none/x' },
      { path: '..' },
      { path: '' },
      { path: 'new' },
    ])
    expect(results.map(result => result.errno)).toEqual([EEXIST, EEXIST, ENOENT, EINVAL, EEXIST, 0])
    expect(fs.readFileSync(inside('there'), 'utf8')).toBe('old')
    expect(fs.existsSync(inside('target'))).toBe(false)
  })

  it('leaves nothing behind when it cannot finish', () => {
    const before = openDescriptors()
    const [bad, good] = write([{ path: 'bad', xattrs: Buffer.from('malformed') }, { path: 'good' }])
    expect([bad!.errno, good!.errno]).toEqual([EINVAL, 0])
    expect(fs.readdirSync(directory)).toEqual(['good'])
    expect(openDescriptors()).toBe(before)
  })

  it('refuses a malformed spec before it writes anything', () => {
    const { spec, data } = encodeSpecs([{ path: 'a', content: Buffer.from('x') }, { path: 'b' }])
    expect(codeOf(() => addon.writeFiles(root, spec.subarray(0, -1), data))).toBe('EINVAL')
    expect(codeOf(() => addon.writeFiles(root, spec, Buffer.alloc(0)))).toBe('EINVAL')
    expect(fs.readdirSync(directory)).toEqual([])
    expect(addon.writeFiles(root, Buffer.alloc(0), Buffer.alloc(0))).toHaveLength(0)
  })

  it('leaves holes where blocks are zero', ctx => {
    const content = Buffer.alloc(1_000_001)
    content.write('start', 0)
    content.write('middle', 500_000)
    write([
      { path: 'sparse', content, sparse: true },
      { path: 'zeros', content: Buffer.alloc(70_000), sparse: true },
      { path: 'dense', content },
    ])
    for (const name of ['sparse', 'dense']) expect(fs.readFileSync(inside(name)).equals(content)).toBe(true)
    expect(fs.readFileSync(inside('zeros')).equals(Buffer.alloc(70_000))).toBe(true)
    const sparse = fs.statSync(inside('sparse'))
    if (sparse.blocks === fs.statSync(inside('dense')).blocks) return ctx.skip('no sparse files on this filesystem')
    expect(sparse.blocks * 512).toBeLessThan(100_000)
    expect(fs.statSync(inside('zeros')).blocks).toBe(0)
    const fd = addon.openAt(root, 'sparse', O_RDONLY, 0)
    const segments = addon.dataSegments(fd, content.length)
    addon.close(fd)
    expect([...segments]).toEqual([0, 4096, Math.floor(500_000 / 4096) * 4096, 4096])
  })

  it('sets xattrs, also on files that their owner may not write', ctx => {
    if (!userXattrs()) return ctx.skip('no user xattrs on this filesystem')
    const xattrs = { 'user.a': Buffer.from('1'), 'user.b': randomBytes(1000), 'user.empty': Buffer.alloc(0) }
    const encoded = encodeXattrs(xattrs).toString('base64')
    expect(write([{ path: 'mine', mode: 0o400, xattrs: encodeXattrs(xattrs) }])[0]).toMatchObject({
      errno: 0,
      flags: 0,
    })
    const { spec } = encodeSpecs([
      {
        path: 'theirs',
        mode: 0o400,
        uid: isRoot ? 65534 : undefined,
        gid: isRoot ? 65534 : undefined,
        xattrs: encodeXattrs(xattrs),
      },
    ])
    runUnprivileged(`addon.writeFiles(root, Buffer.from('${spec.toString('base64')}', 'base64'), Buffer.from('${encoded}', 'base64'))
      process.stdout.write('1')`)
    expect(read(['mine', 'theirs']).map(entry => entry.xattrs)).toEqual([xattrs, xattrs])
  })

  it('flags xattrs that are refused, and keeps the file', () => {
    const [result] = write([
      { path: 'file', content: Buffer.from('x'), xattrs: encodeXattrs({ 'nonsense.name': Buffer.from('1') }) },
    ])
    expect(result).toMatchObject({ errno: 0, flags: META_FLAG.xattrsFailed })
    expect(fs.readFileSync(inside('file'), 'utf8')).toBe('x')
  })

  it('does not let a file inherit the default ACL of its directory', ctx => {
    fs.mkdirSync(inside('acl'))
    const acl = Buffer.from(
      '0200000001000700ffffffff02000700010000000400070000ffffff1000070000ffffff2000000000ffffff',
      'hex',
    )
    for (const at of [20 + 4, 28 + 4, 36 + 4]) acl.writeUInt32LE(0xffffffff, at)
    if (addon.setXattrs(root, 'acl', encodeXattrs({ 'system.posix_acl_default': acl })) !== 0)
      return ctx.skip('no ACLs on this filesystem')
    expect(Object.keys(decodeXattrs(addon.getXattrs(root, 'acl')))).toEqual(['system.posix_acl_default'])
    expect(write([{ path: 'acl/file', mode: 0o640 }])[0]).toMatchObject({
      flags: 0,
      mode: fs.constants.S_IFREG | 0o640,
    })
    expect(read(['acl/file'])[0]!.xattrs).toEqual({})
  })

  it('sets the owner as root', ctx => {
    if (!isRoot) return ctx.skip('changing owners needs root')
    const [result] = write([{ path: 'file', uid: 12345, gid: 54321, mode: 0o6755 }])
    expect(result).toMatchObject({ errno: 0, flags: 0, uid: 12345, gid: 54321, mode: fs.constants.S_IFREG | 0o6755 })
  })

  it('flags a refused owner, and then sets no set-id bits', () => {
    const { spec } = encodeSpecs([
      { path: 'suid', uid: 0, gid: 0, mode: 0o6755 },
      { path: 'plain', uid: 0, gid: 0, mode: 0o755 },
    ])
    const meta = Buffer.from(
      runUnprivileged(`const meta = addon.writeFiles(root, Buffer.from('${spec.toString('base64')}', 'base64'), Buffer.alloc(0))
      process.stdout.write(JSON.stringify(meta.toString('base64')))`) as string,
      'base64',
    )
    expect(parseMeta(meta, 0)).toMatchObject({
      errno: 0,
      flags: META_FLAG.ownerFailed | META_FLAG.modeFailed,
      mode: fs.constants.S_IFREG | 0o755,
    })
    expect(parseMeta(meta, 1)).toMatchObject({
      errno: 0,
      flags: META_FLAG.ownerFailed,
      mode: fs.constants.S_IFREG | 0o755,
    })
  })
})

describe.each(builds)('safe resolution %s', (_name, build) => {
  const operations: [string, (path: string) => unknown][] = [
    ['openAt', path => build.openAt(root, path, O_RDONLY, 0)],
    ['statAt', path => build.statAt(root, path)],
    ['mkdirAt', path => build.mkdirAt(root, path, 0o700)],
    ['symlinkAt', path => build.symlinkAt(Buffer.from('x'), root, path)],
    ['mknodAt', path => build.mknodAt(root, path, fs.constants.S_IFIFO | 0o600, 0, 0)],
    ['linkAt from', path => build.linkAt(root, path, 'fresh')],
    ['linkAt to', path => build.linkAt(root, 'real/file', path)],
    ['unlinkAt', path => build.unlinkAt(root, path)],
    ['rmdirAt', path => build.rmdirAt(root, path)],
    ['renameAt from', path => build.renameAt(root, path, 'fresh', 0)],
    ['renameAt to', path => build.renameAt(root, 'real/file', path, 0)],
    ['readlinkAt', path => build.readlinkAt(root, path)],
    ['chmodAt', path => build.chmodAt(root, path, 0o600)],
    ['chownAt', path => build.chownAt(root, path, -1, -1)],
    ['utimesAt', path => build.utimesAt(root, path, 0n)],
    ['getXattrs', path => build.getXattrs(root, path)],
    ['setXattrs', path => build.setXattrs(root, path, Buffer.alloc(0))],
  ]

  beforeEach(() => {
    fs.mkdirSync(inside('real/sub'), { recursive: true })
    fs.writeFileSync(inside('real/file'), 'x')
    fs.symlinkSync('real', inside('link'))
    fs.symlinkSync('..', inside('real/up'))
  })

  it.each(operations)('%s refuses a symlink on the way', (_operation, action) => {
    const before = openDescriptors()
    for (const path of ['link/file', 'real/up/file', 'link/sub/file']) {
      const error = errorOf(() => action(path))
      expect(error).toMatchObject({ code: 'ELOOP', errno: -ELOOP, syscall: 'openat2', path })
    }
    expect(codeOf(() => action('real/file/below'))).toBe('ENOTDIR')
    expect(codeOf(() => action('real/missing/below'))).toBe('ENOENT')
    expect(openDescriptors()).toBe(before)
  })

  it.each(operations)('%s refuses paths that are not plainly beneath', (_operation, action) => {
    for (const path of [
      '..',
      '../x',
      'real/../x',
      '/etc/passwd',
      '/',
      'real//file',
      'real/',
      './real',
      'real/.',
      'a\0b',
      'a\0/b',
      '\u012e\u012e/x',
      'real\u012ffile',
    ]) {
      expect([path, codeOf(() => action(path))]).toEqual([path, 'EINVAL'])
    }
    expect(codeOf(() => action('n'.repeat(256)))).toBe('ENAMETOOLONG')
    expect(codeOf(() => action(`${'n'.repeat(256)}/x`))).toBe('ENAMETOOLONG')
  })

  it('refuses it in the batch calls too', async () => {
    const [scanned] = parseScan(await build.scanDirs(root, Buffer.from('link/sub')))
    expect(scanned!.errno).toBe(ELOOP)
    const { meta } = build.readEntries(root, Buffer.from('link/file'), Buffer.alloc(10), 10, 0)
    expect(parseMeta(meta, 0).errno).toBe(ELOOP)
    expect(write([{ path: 'link/new' }], build)[0]!.errno).toBe(ELOOP)
    expect(fs.existsSync(inside('real/new'))).toBe(false)
  })

  it('does not follow the last component', () => {
    fs.symlinkSync('real/file', inside('last'))
    const before = fs.statSync(inside('real/file'), { bigint: true })
    expect(codeOf(() => build.openAt(root, 'last', O_RDONLY, 0))).toBe('ELOOP')
    expect(codeOf(() => build.openAt(root, 'last', O_WRONLY | O_CREAT, 0o600))).toBe('ELOOP')
    expect(codeOf(() => build.chmodAt(root, 'last', 0o600))).toBe('EOPNOTSUPP')
    build.utimesAt(root, 'last', 5n)
    build.chownAt(root, 'last', process.getuid!(), process.getgid!())
    expect(build.statAt(root, 'last').mtimeNs).toBe(5n)
    expect(String(build.readlinkAt(root, 'last'))).toBe('real/file')
    expect(decodeXattrs(build.getXattrs(root, 'last'))).toEqual({})
    expect(build.setXattrs(root, 'last', encodeXattrs({ 'user.k': Buffer.from('v') }))).not.toBe(0)
    build.linkAt(root, 'last', 'second')
    expect(build.statAt(root, 'second').ino).toBe(build.statAt(root, 'last').ino)
    expect(fs.statSync(inside('real/file'), { bigint: true })).toEqual(before)
  })

  it('reaches paths longer than PATH_MAX', async () => {
    const component = '\xff'.repeat(199)
    let deep = component
    build.mkdirAt(root, deep, 0o700)
    while (deep.length < 9000) {
      deep = `${deep}/${component}`
      build.mkdirAt(root, deep, 0o700)
    }
    const raw = Buffer.from(`${deep}/file`, 'latin1')
    expect(write([{ path: raw, content: Buffer.from('deep') }], build)[0]!.errno).toBe(0)
    build.renameAt(root, `${deep}/file`, `${deep}/moved`, 0)
    expect(build.statAt(root, `${deep}/moved`).size).toBe(4)
    const fd = build.openAt(root, `${deep}/moved`, O_RDONLY, 0)
    expect(fs.readFileSync(fd, 'utf8')).toBe('deep')
    build.close(fd)
    const [scanned] = parseScan(await build.scanDirs(root, Buffer.from(deep, 'latin1')))
    expect(scanned!.entries.map(entry => String(entry.name))).toEqual(['moved'])
    const out = Buffer.alloc(4)
    build.readEntries(root, Buffer.from(`${deep}/moved`, 'latin1'), out, 10, 0)
    expect(String(out)).toBe('deep')
    expect(codeOf(() => build.statAt(root, `${deep}/none`))).toBe('ENOENT')
    fs.symlinkSync(component, inside('shortcut'))
    expect(codeOf(() => build.statAt(root, `shortcut/${deep.slice(200)}/moved`))).toBe('ELOOP')
  })

  it('names the root itself by the empty path', () => {
    expect(build.statAt(root, '').ino).toBe(fs.statSync(directory, { bigint: true }).ino)
    build.chmodAt(root, '', 0o711)
    build.utimesAt(root, '', 1_000_000_001n)
    expect(fs.statSync(directory, { bigint: true })).toMatchObject({ mtimeNs: 1_000_000_001n })
    expect(fs.statSync(directory).mode & 0o7777).toBe(0o711)
    expect(codeOf(() => build.rmdirAt(root, ''))).toBe('EINVAL')
  })
})

describe.each(builds)('single calls %s', (_name, build) => {
  it('gives statAt and statFd as lstat does', () => {
    fs.writeFileSync(inside('file'), randomBytes(9000))
    fs.symlinkSync('file', inside('link'))
    for (const name of ['file', 'link', '']) {
      const status = fs.lstatSync(inside(name), { bigint: true })
      expect(build.statAt(root, name)).toMatchObject({
        mode: Number(status.mode),
        nlink: Number(status.nlink),
        uid: Number(status.uid),
        gid: Number(status.gid),
        size: Number(status.size),
        mtimeNs: status.mtimeNs,
        ctimeNs: status.ctimeNs,
        ino: status.ino,
        dev: status.dev,
        blocks: Number(status.blocks),
        rdevMajor: 0,
        rdevMinor: 0,
      })
    }
    expect(build.statFd(root)).toEqual(build.statAt(root, ''))
    expect(codeOf(() => build.statFd(-100))).toBe('EBADF')
  })

  it('makes, renames, links and removes', () => {
    build.mkdirAt(root, 'dir', 0o700)
    const fd = build.openAt(root, 'dir/file', O_RDWR | O_CREAT | O_EXCL, 0o600)
    fs.writeSync(fd, 'hello')
    build.close(fd)
    build.linkAt(root, 'dir/file', 'hard')
    expect(build.statAt(root, 'hard').nlink).toBe(2)
    build.symlinkAt(Buffer.from([0xff]), root, 'soft')
    expect([...build.readlinkAt(root, 'soft')]).toEqual([0xff])
    build.unlinkAt(root, 'soft')
    build.unlinkAt(root, 'hard')
    expect(codeOf(() => build.rmdirAt(root, 'dir'))).toBe('ENOTEMPTY')
    build.unlinkAt(root, 'dir/file')
    build.rmdirAt(root, 'dir')
    expect(fs.readdirSync(directory)).toEqual([])
    for (const target of ['a\0b', 'x'.repeat(4096)]) {
      expect(['EINVAL', 'ENAMETOOLONG']).toContain(codeOf(() => build.symlinkAt(Buffer.from(target), root, 'bad')))
    }
  })

  it('renames without replacing, and exchanges', () => {
    fs.writeFileSync(inside('a'), 'A')
    fs.writeFileSync(inside('b'), 'B')
    expect(codeOf(() => build.renameAt(root, 'a', 'b', 1))).toBe('EEXIST')
    build.renameAt(root, 'a', 'b', 2)
    expect([fs.readFileSync(inside('a'), 'utf8'), fs.readFileSync(inside('b'), 'utf8')]).toEqual(['B', 'A'])
    expect(codeOf(() => build.renameAt(root, 'a', 'none', 2))).toBe('ENOENT')
    build.renameAt(root, 'a', 'b', 0)
    expect([fs.readdirSync(directory), fs.readFileSync(inside('b'), 'utf8')]).toEqual([['b'], 'B'])
    build.renameAt(root, 'b', 'c', 1)
    expect(fs.readdirSync(directory)).toEqual(['c'])
  })

  it('sets mode, owner and mtime, and leaves the access time alone', () => {
    fs.writeFileSync(inside('file'), '')
    fs.utimesSync(inside('file'), 7, 8)
    for (const mode of [0o4711, 0o2755, 0o1777, 0, 0o644]) {
      build.chmodAt(root, 'file', mode)
      expect(fs.statSync(inside('file')).mode & 0o7777).toBe(mode)
    }
    for (const mtimeNs of [0n, -1n, 1_600_000_000_999_999_999n, 4_000_000_000_000_000_001n]) {
      build.utimesAt(root, 'file', mtimeNs)
      expect(fs.statSync(inside('file'), { bigint: true })).toMatchObject({ mtimeNs, atimeNs: 7_000_000_000n })
    }
    if (!isRoot) return
    build.chownAt(root, 'file', 1234, -1)
    expect(fs.statSync(inside('file'))).toMatchObject({ uid: 1234, gid: process.getgid!() })
  })

  it('makes devices as root', ctx => {
    if (!isRoot) return ctx.skip('device nodes need root')
    try {
      build.mknodAt(root, 'null', fs.constants.S_IFCHR | 0o600, 1, 3)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') return ctx.skip('this sandbox refuses device nodes')
      throw error
    }
    expect(build.statAt(root, 'null')).toMatchObject({ rdevMajor: 1, rdevMinor: 3 })
  })

  it('round-trips xattrs of files and directories, and makes the set equal', ctx => {
    if (!userXattrs()) return ctx.skip('no user xattrs on this filesystem')
    fs.writeFileSync(inside('file'), '')
    fs.mkdirSync(inside('dir'))
    const first = { 'user.a': Buffer.from([0, 1, 255]), 'user.b': Buffer.alloc(0), 'user.zz': randomBytes(900) }
    const second = { 'user.b': Buffer.from('changed'), 'user.c': Buffer.from('new') }
    for (const name of ['file', 'dir', '']) {
      for (const xattrs of [first, second, {}]) {
        expect(build.setXattrs(root, name, encodeXattrs(xattrs))).toBe(0)
        expect(decodeXattrs(build.getXattrs(root, name))).toEqual(xattrs)
        expect(read([name])[0]!.xattrs).toEqual(xattrs)
      }
    }
    const { ctimeNs } = build.statAt(root, 'file')
    expect(build.setXattrs(root, 'file', Buffer.alloc(0))).toBe(0)
    expect(build.statAt(root, 'file').ctimeNs).toBe(ctimeNs) // nothing differed, nothing was touched
  })

  it('returns the errno of a refused xattr and sets the others; refuses a malformed encoding', ctx => {
    if (!userXattrs()) return ctx.skip('no user xattrs on this filesystem')
    fs.writeFileSync(inside('file'), '')
    const refused = build.setXattrs(
      root,
      'file',
      encodeXattrs({ 'nonsense.k': Buffer.from('1'), 'user.k': Buffer.from('2') }),
    )
    expect(refused).toBe(osConstants.errno.EOPNOTSUPP)
    expect(decodeXattrs(build.getXattrs(root, 'file'))).toEqual({ 'user.k': Buffer.from('2') })
    const good = encodeXattrs({ 'user.k': Buffer.from('3') })
    for (let length = 1; length < good.length; length++) {
      expect(codeOf(() => build.setXattrs(root, 'file', good.subarray(0, length)))).toBe('EINVAL')
    }
    expect(decodeXattrs(build.getXattrs(root, 'file'))).toEqual({ 'user.k': Buffer.from('2') })
    expect(codeOf(() => build.getXattrs(root, 'missing'))).toBe('ENOENT')
  })

  it('keeps trusted xattrs of symlinks and FIFOs as root', ctx => {
    if (!isRoot) return ctx.skip('trusted xattrs need root')
    fs.symlinkSync('nowhere', inside('link'))
    build.mknodAt(root, 'fifo', fs.constants.S_IFIFO | 0o600, 0, 0)
    const xattrs = { 'trusted.k': Buffer.from('v') }
    if (build.setXattrs(root, 'link', encodeXattrs(xattrs)) !== 0) return ctx.skip('trusted xattrs are refused here')
    expect(build.setXattrs(root, 'fifo', encodeXattrs(xattrs))).toBe(0)
    expect(read(['link', 'fifo']).map(entry => [entry.errno, entry.flags, entry.xattrs])).toEqual([
      [0, 0, xattrs],
      [0, 0, xattrs],
    ])
  })
})

describe('errors', () => {
  it('look like those of node:fs', () => {
    const ours = errorOf(() => addon.unlinkAt(root, 'missing\xe9'))
    expect(ours).toBeInstanceOf(Error)
    expect({ ...ours, message: ours.message }).toEqual({
      code: 'ENOENT',
      errno: -ENOENT,
      syscall: 'unlinkat',
      path: 'missing\xe9',
      message: "ENOENT: no such file or directory, unlinkat 'missing\xe9'",
    })
    expect(codeOf(() => addon.openRoot(Buffer.from('relative')))).toBe('EINVAL')
    expect(codeOf(() => addon.openRoot(Buffer.from('/tmp\0x')))).toBe('EINVAL')
    expect(codeOf(() => addon.openRoot(Buffer.from('/none/such')))).toBe('ENOENT')
    expect(codeOf(() => addon.close(99999))).toBe('EBADF')
    expect(codeOf(() => addon.statAt(-100, 'x'))).toBe('EBADF')
  })

  it('say TypeError for arguments of the wrong type', () => {
    const wrong = addon as unknown as Record<string, (...values: unknown[]) => unknown>
    for (const [name, values] of Object.entries({
      scanDirs: [root, 'text'],
      readEntries: [root, Buffer.alloc(0)],
      statAt: ['x', 'y'],
      openAt: [root, Buffer.alloc(1), 0, 0],
      utimesAt: [root, 'x', 5],
      chunk: [Buffer.alloc(1), 0, 1, 64, 128, -1, true],
      writeFiles: [root, null, null],
      close: [],
      hash: ['text'],
      hasherUpdate: [Buffer.alloc(1)],
    })) {
      expect(errorOf(() => wrong[name]!(...values))).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
    }
  })
})

describe('descriptors', () => {
  it('keeps a lock against another process until it ends', async () => {
    fs.writeFileSync(inside('lock'), '')
    const code = `const addon = require(process.argv[1]); const fs = require('node:fs')
      process.stdout.write(String(addon.flock(fs.openSync(process.argv[2]), 2 | 4)))
      process.stdin.resume().on('end', () => process.exit(0))`
    const child = spawn(process.execPath, ['-e', code, addonFile, join(directory, 'lock')])
    const [said] = await once(child.stdout, 'data')
    expect(String(said)).toBe('true')
    const fd = addon.openAt(root, 'lock', O_RDWR, 0)
    expect([addon.flock(fd, 2 | 4), addon.flock(fd, 1 | 4)]).toEqual([false, false])
    child.stdin.end()
    await once(child, 'exit')
    expect([addon.flock(fd, 2 | 4), addon.flock(fd, 8)]).toEqual([true, true])
    addon.close(fd)
    expect(codeOf(() => addon.flock(99999, 2))).toBe('EBADF')
  })

  it('finds data between holes and keeps the position', ctx => {
    const fd = fs.openSync(inside('file'), 'w+')
    fs.writeSync(fd, Buffer.alloc(8192, 1), 0, 8192, 65536)
    fs.ftruncateSync(fd, 1 << 20)
    fs.readSync(fd, Buffer.alloc(10))
    const segments = [...addon.dataSegments(fd, 1 << 20)]
    const position = Buffer.alloc(1)
    fs.writeSync(fd, 'P') // at the current position: behind the ten bytes that were read
    fs.readSync(fd, position, 0, 1, 10)
    fs.closeSync(fd)
    expect(String(position)).toBe('P')
    if (segments.length === 2 && segments[0] === 0) return ctx.skip('no holes on this filesystem')
    expect(segments).toEqual([65536, 8192])
  })

  it('gives no segments for an empty file, and one for a dense one', () => {
    fs.writeFileSync(inside('dense'), Buffer.alloc(10_000, 1))
    const fd = addon.openAt(root, 'dense', O_RDONLY, 0)
    expect([...addon.dataSegments(fd, 10_000)]).toEqual([0, 10_000])
    expect([...addon.dataSegments(fd, 0)]).toEqual([])
    addon.close(fd)
  })

  it('clones, or says that it cannot', () => {
    fs.writeFileSync(inside('from'), 'content')
    const from = addon.openAt(root, 'from', O_RDONLY, 0)
    const to = addon.openAt(root, 'to', O_RDWR | O_CREAT, 0o600)
    try {
      addon.cloneFd(from, to)
      expect(fs.readFileSync(inside('to'), 'utf8')).toBe('content')
    } catch (error) {
      expect(['EOPNOTSUPP', 'EXDEV', 'EINVAL']).toContain((error as NodeJS.ErrnoException).code)
    } finally {
      addon.close(from)
      addon.close(to)
    }
  })

  it('syncs and measures the filesystem of a root descriptor', () => {
    addon.syncfs(root)
    expect(codeOf(() => addon.syncfs(99999))).toBe('EBADF')
    const { free, total, type } = addon.statfs(root)
    const expected = fs.statfsSync(directory)
    expect(type).toBe(expected.type)
    expect(total).toBe((expected.blocks - expected.bfree + expected.bavail) * expected.bsize)
    expect(free).toBeGreaterThan(0)
    expect(free).toBeLessThanOrEqual(total)
  })

  it('gives the bytes of argv', () => {
    const code = `process.stdout.write(require(process.argv[1]).rawArgv().toString('hex'))`
    // A shell makes the byte that JavaScript strings cannot carry.
    const shell = `exec "$0" -e "$1" "$2" "$(printf 'a\\377\\nb')" ''`
    const hex = execFileSync('sh', ['-c', shell, process.execPath, code, addonFile], { encoding: 'utf8' })
    const parts = Buffer.from(hex, 'hex').toString('latin1').split('\0')
    expect(parts).toEqual([process.execPath, '-e', code, addonFile, 'a\xff\nb', ''])
  })
})

describe('chunk', () => {
  const [minBytes, averageBytes, maxBytes] = [2048, 8192, 32768]
  const chunk = (data: Buffer, start = 0, end = data.length, last = true) => [
    ...addon.chunk(data, start, end, minBytes, averageBytes, maxBytes, last),
  ]
  const pieces = (data: Buffer) => {
    const ends = chunk(data)
    return ends.map((end, i) => data.subarray(ends[i - 1] ?? 0, end).toString('base64'))
  }
  /** The same bytes in every run: a failure can be repeated. */
  const noise = (length: number, seed: number) => {
    const data = Buffer.alloc(length)
    for (let i = 0, state = seed; i < length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      data[i] = state >>> 24
    }
    return data
  }
  const data = noise(2_000_000, 1)

  it('respects its limits and comes near the average', () => {
    const ends = chunk(data)
    expect(ends.at(-1)).toBe(data.length)
    const sizes = ends.map((end, i) => end - (ends[i - 1] ?? 0))
    for (const size of sizes.slice(0, -1)) {
      expect(size).toBeGreaterThan(minBytes)
      expect(size).toBeLessThanOrEqual(maxBytes)
    }
    const mean = data.length / ends.length
    expect(mean).toBeGreaterThan(averageBytes * 0.7)
    expect(mean).toBeLessThan(averageBytes * 1.4)
    expect(new Set(sizes).size).toBeGreaterThan(50)
    expect(chunk(Buffer.alloc(100_000))).toEqual([32768, 65536, 98304, 100_000])
  })

  it('keeps its boundaries from version to version', () => {
    // Another table or another rule would store every large file anew.
    expect(chunk(data).slice(0, 6)).toEqual([8124, 18826, 24408, 34707, 43179, 45790])
  })

  it('is independent of how the input is cut into buffers', () => {
    const whole = chunk(data)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 3000, max: 200_000 }), { minLength: 1, maxLength: 20 }), sizes => {
        const ends: number[] = []
        let pending = Buffer.alloc(0)
        let offset = 0 // of `pending` in the data
        for (let i = 0, at = 0; at < data.length; i++) {
          const next = data.subarray(at, at + sizes[i % sizes.length]!)
          at += next.length
          pending = Buffer.concat([pending, next])
          const found = chunk(pending, 0, pending.length, at === data.length)
          for (const end of found) ends.push(offset + end)
          const consumed = found.at(-1) ?? 0
          pending = pending.subarray(consumed)
          offset += consumed
        }
        expect(ends).toEqual(whole)
      }),
      { numRuns: 10 },
    )
  })

  it('holds back a chunk that is not certain', () => {
    const [first, second] = chunk(data)
    expect(chunk(data, 0, first! - 1, false)).toEqual([])
    expect(chunk(data, 0, first! - 1, true)).toEqual([first! - 1])
    expect(chunk(data, 0, first! + 1, false)).toEqual([first])
    expect(chunk(data, first!, second! + 1, false)).toEqual([second])
    expect(chunk(Buffer.alloc(40_000), 0, 32768, false)).toEqual([32768])
    expect(chunk(Buffer.alloc(40_000), 0, 32767, false)).toEqual([])
    expect(chunk(data, 5, 5)).toEqual([])
  })

  it('finds the old chunks again after an insertion at the front', () => {
    const before = pieces(data)
    const after = new Set(pieces(Buffer.concat([noise(1000, 2), data])))
    expect(before.filter(piece => !after.has(piece)).length).toBeLessThanOrEqual(5)
  })

  it('refuses limits that make no sense', () => {
    const call = (...limits: [number, number, number]) => codeOf(() => addon.chunk(data, 0, 100, ...limits, true))
    expect([call(63, 100, 100), call(200, 100, 300), call(64, 300, 200), call(64, 128, 2 ** 33)]).toEqual(
      Array(4).fill('EINVAL'),
    )
    expect(codeOf(() => addon.chunk(data, 0, data.length + 1, 64, 128, 256, true))).toBe('EINVAL')
    expect(codeOf(() => addon.chunk(data, 5, 4, 64, 128, 256, true))).toBe('EINVAL')
  })
})
