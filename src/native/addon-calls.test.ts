/** The *at calls: nothing leads out of the root, with openat2 and without. */
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { constants as osConstants } from 'node:os'
import { beforeEach, describe, expect, it } from 'vitest'
import { isRoot } from '../../test/support/machine.ts'
import { parseMeta, parseScan, read, write } from '../../test/support/native-records.ts'
import {
  addonBuilds,
  codeOf,
  directory,
  errorOf,
  inside,
  openDescriptors,
  root,
  userXattrs,
} from '../../test/support/native-scratch.ts'
import { decodeXattrs, encodeXattrs } from '../../test/support/native-xattrs.ts'

const { ELOOP } = osConstants.errno
const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_WRONLY } = fs.constants

describe.each(addonBuilds())('safe resolution %s', (_name, build) => {
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

describe.each(addonBuilds())('single calls %s', (_name, build) => {
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
