/** scanDirs: what a directory holds, batched, and in threads. */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { constants as osConstants } from 'node:os'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRoot } from '../../test/support/machine.ts'
import { parseScan, read, scan } from '../../test/support/native-records.ts'
import {
  addonFile,
  codeOf,
  directory,
  inside,
  list,
  openDescriptors,
  root,
  runUnprivileged,
} from '../../test/support/native-scratch.ts'
import { addon, RECORD_FLAG, SCAN_HEADER, SPAN } from './addon.ts'

const { EACCES, EINVAL, ELOOP, ENOENT, ENOTDIR } = osConstants.errno
const S_IFMT = 0o170000

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
