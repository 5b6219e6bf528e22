/** Archives that mean harm, and such as are damaged: refused, and nothing is left of them. */
import { execFileSync } from 'node:child_process'
import { createWriteStream, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ctx, makeAndExport, out, refused, scratch, work } from '../../test/support/archive-scratch.ts'
import { changed, END, file, header, long, padded, pax, write } from '../../test/support/archive-tar.ts'
import { isRoot } from '../../test/support/machine.ts'
import type { SavepointError } from '../errors/errors.ts'
import { importLimits } from './archive-unsafe.ts'
import { importArchive } from './import.ts'
import { closeContext, openContext } from './open.ts'

const MIB = 1024 * 1024

describe('unsafe archives are refused', () => {
  const sparse = {
    'GNU.sparse.major': '1',
    'GNU.sparse.minor': '0',
    'GNU.sparse.name': 'x',
    'GNU.sparse.realsize': '100',
  }
  const cases: [what: string, ...parts: Buffer[]][] = [
    ['an absolute path', file('/etc/passwd')],
    ['an absolute path in a record', pax({ path: '/etc/passwd' }), file('x')],
    ['an absolute path as a GNU long name', long('L', `/${'x'.repeat(120)}`), file('x')],
    ['a path that leads out', file('../x')],
    ['a path that leads out further below', file('a/../../x')],
    ['a path that only looks like leading out', file('a/../x')],
    ['".." itself', file('..')],
    ['no name', file('')],
    ['a NUL in a name', pax({ path: 'a\0b' }), file('x')],
    ['a NUL in a GNU long name', long('L', 'a\0b'), file('x')],
    ['a name of 256 bytes', pax({ path: `a/${'x'.repeat(256)}` }), file('x')],
    ['an entry below a symlink', header({ name: 'a', type: '2', linkname: '/etc' }), file('a/x')],
    ['an entry below a file', file('a'), file('a/x')],
    ['a symlink in place of a directory', file('a/x'), header({ name: 'a', type: '2', linkname: '/etc' })],
    ['a file twice', file('a'), file('./a')],
    ['a directory twice', header({ name: 'a/', type: '5' }), header({ name: 'a/', type: '5' })],
    ['a file that is a directory too', file('a'), header({ name: 'a/', type: '5' })],
    ['a root that is no directory', file('.')],
    ['a hard link to what comes later', header({ name: 'a', type: '1', linkname: 'b' }), file('b')],
    ['a hard link to itself', header({ name: 'a', type: '1', linkname: 'a' })],
    ['a hard link to outside', header({ name: 'a', type: '1', linkname: '../../etc/passwd' })],
    ['a hard link to an absolute path', header({ name: 'a', type: '1', linkname: '/etc/passwd' })],
    [
      'a hard link to a symlink',
      header({ name: 's', type: '2', linkname: '/etc/passwd' }),
      header({ name: 'a', type: '1', linkname: 's' }),
    ],
    ['a hard link to a directory', header({ name: 'd/', type: '5' }), header({ name: 'a', type: '1', linkname: 'd' })],
    ['a symlink without a target', header({ name: 'a', type: '2' })],
    ['a symlink with an endless target', pax({ linkpath: 'x'.repeat(4096) }), header({ name: 'a', type: '2' })],
    ['an unknown type', header({ name: 'a', type: 'Z' })],
    ['a part of a multi-volume archive', header({ name: 'a', type: 'M' })],
    ['a directory with content', file('a', 'x', { type: '5' })],
    ['an impossible owner', pax({ uid: '4294967295' }), file('a')],
    ['an owner that is no number', pax({ gid: '1e3' }), file('a')],
    ['an impossible time', pax({ mtime: '99999999999999' }), file('a')],
    ['a time that is none', pax({ mtime: 'now' }), file('a')],
    ['an impossible device', header({ name: 'a', type: '3', devMajor: 4096 })],
    ['a size that is negative', changed(header({ name: 'a' }), 124, '\xff'.repeat(12))],
    ['a size that is too large', changed(header({ name: 'a' }), 124, `\x80${'\xff'.repeat(11)}`)],
    ['a number that is none', changed(header({ name: 'a' }), 100, '00089  ')],
    ['a path for all entries', pax({ path: 'x' }, 'g'), file('a')],
    ['a malformed record', Buffer.concat([header({ type: 'x', size: 9 }), padded('99 path=x')]), file('a')],
    ['a record without an end', Buffer.concat([header({ type: 'x', size: 9 }), padded('9 path=xy')]), file('a')],
    ['a record of no length', Buffer.concat([header({ type: 'x', size: 9 }), padded('0 path=x\n')]), file('a')],
    ['a header of endless size', header({ type: 'x', size: 2 ** 33 })],
    ['an attribute without a name', pax({ 'SCHILY.xattr.': 'x' }), file('a')],
    ['an attribute beyond any limit', pax({ 'SCHILY.xattr.user.x': 'x'.repeat(65_537) }), file('a')],
    ['a sparse map that overlaps', pax(sparse), file('x', `${'2\n0\n10\n5\n10\n'.padEnd(512, '\0')}${'d'.repeat(20)}`)],
    ['a sparse map beyond the file', pax(sparse), file('x', `${'1\n99\n10\n'.padEnd(512, '\0')}${'d'.repeat(10)}`)],
    ['a sparse map without its data', pax(sparse), file('x', '1\n0\n10\n'.padEnd(512, '\0'))],
    ['a sparse map of words', pax(sparse), file('x', 'many\n'.padEnd(512, '\0'))],
    ['a sparse map without an end', pax(sparse), file('x', '1'.repeat(2048))],
    ['an endless sparse map', pax(sparse), file('x', '9999999\n'.padEnd(512, '\0'))],
    ['a sparse file in an older format', pax({ 'GNU.sparse.map': '0,1', 'GNU.sparse.size': '1' }), file('x', 'd')],
    [
      'a note on "..", that it was left out',
      pax({ comment: 'savepoint.unknown excluded ..' }),
      header({ name: './', type: '5' }),
    ],
    ['a note without a reason', pax({ comment: 'savepoint.unknown because x' }), header({ name: './', type: '5' })],
    ...['excluded:what', 'excluded:', 'excluded:file:5', 'too-large:file:much', 'too-large:file:5:5'].map(
      (why): [string, ...Buffer[]] => [
        `a note with the reason ${why}`,
        pax({ comment: `savepoint.unknown ${why} x` }),
        header({ name: './', type: '5' }),
      ],
    ),
    [
      'a note on something that is there',
      pax({ comment: 'savepoint.unknown excluded a' }),
      header({ name: './', type: '5' }),
      file('a'),
    ],
    ['a note at a file', pax({ comment: 'savepoint.unknown excluded a' }), file('b')],
  ]
  it.each(cases)('%s', async (_, ...parts) => {
    await refused(write(...parts, END))
  })

  it('at once, however much follows', async () => {
    const rest = Array.from({ length: 16 }, (_, i) => file(`f${i}`, String(Math.PI * i).repeat(60_000)))
    const bytes = Buffer.concat([file('/a'), ...rest, END])
    for (const packed of [bytes, gzipSync(bytes), zstdCompressSync(bytes)]) await refused(write(packed))
  })

  it('too deep', async () => {
    const deep = (levels: number) => write(pax({ path: `${'a/'.repeat(levels - 1)}x` }), file('x'), END)
    const { message, hint } = (await refused(deep(5001))) as SavepointError
    expect(message).toMatch(/^Cannot import the archive: "(a\/){100}…" lies 5,001 levels deep; an import takes 5,000$/)
    expect(hint).toBe('Nothing was imported')
    expect((await importArchive(ctx, deep(5000))).files).toBe(1)
  })

  it('too many entries, made parents included', async () => {
    const limits = { ...importLimits, entries: 4 }
    const path = write(file('a/b/c'), file('d'), END)
    await importArchive(ctx, path, {}, limits)
    await refused(write(file('a/b/c'), file('d'), file('e'), END), 'archive.unsafe', limits)
  })

  it('too much in names and attributes, and too much in one directory', async () => {
    const path = write(pax({ 'SCHILY.xattr.user.x': 'x'.repeat(5000) }), file('a'), END)
    await refused(path, 'archive.unsafe', { ...importLimits, metadataBytes: 4000 })
    await refused(write(...Array.from({ length: 20 }, (_, i) => file(`f${i}`)), END), 'archive.unsafe', {
      ...importLimits,
      treeBytes: 1000,
    })
  })

  it('a file above snapshots.max_file_bytes, before its bytes are read', async () => {
    ctx.config.snapshots.max_file_bytes = 10 * MIB
    await refused(write(header({ name: 'a', size: 10 * MIB + 1 })))
    await refused(
      write(
        pax({
          'GNU.sparse.major': '1',
          'GNU.sparse.minor': '0',
          'GNU.sparse.name': 'x',
          'GNU.sparse.realsize': String(2 ** 50),
        }),
        file('x', '0\n'.padEnd(512, '\0')),
        END,
      ),
    )
  })

  it('a bomb, unless it is forced', async () => {
    const bomb = Buffer.concat([header({ name: 'zeros', size: 64 * MIB }), Buffer.alloc(64 * MIB), END])
    const limits = { ...importLimits, freeRatioBytes: 16 * MIB }
    for (const [name, packed] of [
      ['b.tar.gz', gzipSync(bomb)],
      ['b.tar.zst', zstdCompressSync(bomb)],
    ] as const) {
      writeFileSync(out(name), packed)
      const error = await refused(out(name), 'archive.unsafe', limits)
      expect(error).toMatchObject({ hint: expect.stringContaining('--force') })
    }
    expect((await importArchive(ctx, out('b.tar.zst'), { force: true }, limits)).files).toBe(1)
  })

  it('a bomb of a gigabyte in a megabyte, with the limits that everybody has', async () => {
    const head = header({ name: 'zeros', size: 1024 * MIB })
    const zeros = Buffer.alloc(64 * MIB)
    const pieces = Array.from({ length: 16 }, () => zeros)
    const member = gzipSync(zeros, { level: 1 })
    writeFileSync(out('b.tar.gz'), Buffer.concat([gzipSync(head), ...pieces.map(() => member)]))
    await pipeline(Readable.from([head, ...pieces, END]), createZstdCompress(), createWriteStream(out('b.tar.zst')))
    for (const name of ['b.tar.gz', 'b.tar.zst']) {
      expect(statSync(out(name)).size).toBeLessThan(8 * MIB)
      expect((await refused(out(name))).message).toContain('more than 100 times its size')
    }
  })

  it.skipIf(!isRoot)(
    'more than the disk has room for, however small it is stored, unless it is forced [needs a kernel that lets root mount]',
    async () => {
      const small = join(scratch, 'small')
      mkdirSync(small)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m', 'none', small])
      try {
        const other = await openContext({ cwd: work, home: join(small, 'home'), create: true, env: { HOME: scratch } })
        other.config = structuredClone(other.config)
        other.config.snapshots.min_free_bytes = 32 * MIB
        const files = Array.from({ length: 80 }, (_, i) => file(`zeros${i}`, '\0'.repeat(MIB)))
        const archive = write(...files, END)
        await expect(importArchive(other, archive)).rejects.toMatchObject({
          code: 'archive.unsafe',
          message: expect.stringMatching(/more than the 6\d(\.\d)? M\w+ that the disk has room for/),
        })
        expect((await importArchive(other, archive, { force: true })).files).toBe(80)
        closeContext(other)
      } finally {
        execFileSync('umount', [small])
      }
    },
  )

  it('a bomb of holes', async () => {
    const one = (name: string) => [
      pax({
        'GNU.sparse.major': '1',
        'GNU.sparse.minor': '0',
        'GNU.sparse.name': name,
        'GNU.sparse.realsize': String(8 * MIB),
      }),
      file('x', '0\n'.padEnd(512, '\0')),
    ]
    const limits = { ...importLimits, holeBytes: 20 * MIB }
    expect((await importArchive(ctx, write(...one('a'), ...one('b'), END), {}, limits)).files).toBe(2)
    await refused(write(...one('a'), ...one('b'), ...one('c'), END), 'archive.unsafe', limits)
  })

  it('more than the disk or the store may hold', async () => {
    ctx.config.snapshots.min_free_bytes = 2 ** 52
    await refused(write(file('a'), END), 'disk.full')
    ctx.config.snapshots.min_free_bytes = 0
    await refused(write(header({ name: 'a', size: 2 ** 42 })), 'archive.unsafe')
    ctx.config.snapshots.max_file_bytes = Number.POSITIVE_INFINITY
    await refused(write(header({ name: 'a', size: 2 ** 50 })), 'disk.full')
    ctx.config.snapshots.max_store_bytes = 0
    await refused(write(file('a'), END), 'disk.full')
  })
})

describe('damaged archives are refused', () => {
  const whole = () =>
    Buffer.concat([
      file('a', 'x'.repeat(3000)),
      file('large', 'y'.repeat(2 * MIB)),
      pax({ mtime: '1.5' }),
      file('b'),
      END,
    ])

  it('cut anywhere', async () => {
    const bytes = whole()
    const cuts = [
      0,
      1,
      511,
      512,
      600,
      3583,
      3584,
      4096,
      4608,
      MIB,
      bytes.length - 2560,
      bytes.length - 1024,
      bytes.length - 1023,
      bytes.length - 512,
      bytes.length - 1,
    ]
    for (const cut of cuts) await refused(write(bytes.subarray(0, cut)))
    for (const pack of [gzipSync, zstdCompressSync]) {
      const packed = pack(bytes)
      for (const part of [0.1, 0.5, 0.9]) await refused(write(packed.subarray(0, Math.floor(packed.length * part))))
      await refused(write(packed.subarray(0, packed.length - 1)))
    }
  })

  it('followed by something', async () => {
    const garbage = Buffer.alloc(MIB, 'garbage')
    await refused(write(whole(), garbage))
    await refused(write(whole(), Buffer.alloc(10_240), file('more'), END))
    for (const pack of [gzipSync, zstdCompressSync]) {
      await refused(write(pack(whole()), garbage))
      await refused(write(pack(whole()), Buffer.from('g')))
      await refused(write(pack(whole()), pack(whole())))
    }
    expect((await importArchive(ctx, write(whole(), Buffer.alloc(10_240)))).files).toBe(3)
    expect((await importArchive(ctx, write(gzipSync(whole()), Buffer.alloc(10_240)))).files).toBe(3)
  })

  it('with a header or a checksum changed', async () => {
    const bytes = whole()
    bytes[300] = bytes[300]! ^ 1
    await refused(write(bytes))
    await makeAndExport('x.tar.zst')
    const packed = readFileSync(out('x.tar.zst'))
    packed[packed.length - 2] = packed[packed.length - 2]! ^ 1
    await refused(write(packed))
  })

  it('with random bytes changed: refused or read, never a crash', async () => {
    const bytes = Buffer.concat([
      header({ name: './', type: '5' }),
      file('a', 'x'),
      long('L', 'y'.repeat(150)),
      file('b'),
      pax({ path: 'c', 'SCHILY.xattr.user.a': 'b' }),
      file('x'),
      header({ name: 'l', type: '1', linkname: 'a' }),
      END,
    ])
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        async changes => {
          const copy = Buffer.from(bytes)
          for (const [at, value] of changes) copy[at] = value
          const error = await importArchive(ctx, write(copy)).then(
            () => undefined,
            (thrown: Error) => thrown,
          )
          if (error)
            expect(error).toMatchObject({
              name: 'SavepointError',
              code: expect.stringMatching(/^(archive\.unsafe|usage)$/),
            })
        },
      ),
      { numRuns: 150 },
    )
  })

  it('of other formats, with a word on which', async () => {
    writeFileSync(out('x.zip'), Buffer.from('504b030414000000', 'hex'))
    expect((await refused(out('x.zip'), 'usage')).message).toContain('zip')
    writeFileSync(out('x.txt'), 'this is no archive\n'.repeat(100))
    for (const content of ['this is no archive\n'.repeat(100), 'short\n', '', readFileSync('/etc/passwd')]) {
      writeFileSync(out('x.txt'), content)
      expect(await refused(out('x.txt'))).toMatchObject({
        message: `Cannot import ${out('x.txt')}: it is no archive`,
        hint: 'tar, tar.gz and tar.zst are understood',
      })
    }
    writeFileSync(out('x.gz'), gzipSync('this is no archive\n'.repeat(100)))
    expect((await refused(out('x.gz'))).message).toBe(
      'Cannot import the archive: it is compressed, but holds no tar archive',
    )
    await refused(out('does-not-exist'), 'io.failed')
    await refused(work, 'usage')
    execFileSync('mkfifo', [out('pipe')])
    await refused(out('pipe'), 'usage')
  })
})
