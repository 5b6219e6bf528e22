/** writeFiles: many files in one call, each whole or not at all. */
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { constants as osConstants } from 'node:os'
import { describe, expect, it } from 'vitest'
import { isRoot } from '../../test/support/machine.ts'
import { encodeSpecs, parseMeta, read, write } from '../../test/support/native-records.ts'
import {
  codeOf,
  directory,
  inside,
  openDescriptors,
  root,
  runUnprivileged,
  userXattrs,
} from '../../test/support/native-scratch.ts'
import { decodeXattrs, encodeXattrs } from '../../test/support/native-xattrs.ts'
import { addon, META_FLAG } from './addon.ts'

const { EEXIST, EINVAL, ENOENT } = osConstants.errno
const { O_RDONLY } = fs.constants

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
