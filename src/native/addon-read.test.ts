/** readEntries: contents and attributes of many files in one call. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { constants as osConstants } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isRoot } from '../../test/support/machine.ts'
import { parseMeta, read } from '../../test/support/native-records.ts'
import { directory, inside, root, runUnprivileged, userXattrs } from '../../test/support/native-scratch.ts'
import { encodeXattrs } from '../../test/support/native-xattrs.ts'
import { addon, META_FLAG } from './addon.ts'

const { EACCES, EAGAIN, EBADF, EFBIG, EINVAL, ELOOP, ENOENT, ENOTDIR } = osConstants.errno
const S_IFMT = 0o170000

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
