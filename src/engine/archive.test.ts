/** `export` and `import`: round trips, other tars, and archives that mean harm. */

import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  createWriteStream,
  existsSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import type { SavepointError } from '../errors/errors.ts'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { makeSnapshot } from '../model/fixture-snapshot.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { ROOT_NAME, rootTreeOf } from '../targets/dir/capture.ts'
import { linkGroupNumber, unknownEntry } from '../targets/dir/dir-node.ts'
import { decodePax, decodePaxTime, encodePax, encodePaxTime } from './archive-pax.ts'
import { encodeTarHeader, type TarHeader } from './archive-tar-header.ts'
import { importLimits } from './archive-unsafe.ts'
import type { Context } from './context.ts'
import { exportSnapshot } from './export.ts'
import { importArchive } from './import.ts'
import { closeContext, openContext } from './open.ts'
import { rollback } from './rollback.ts'
import { takeSnapshot } from './snapshot.ts'
import { undo } from './undo.ts'

const MIB = 1024 * 1024
const isRoot = process.getuid?.() === 0

let scratch: string
let work: string
let ctx: Context

beforeEach(async () => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), 'savepoint-archive-')))
  work = join(scratch, 'work')
  mkdirSync(work)
  ctx = await openContext({ cwd: work, home: join(scratch, 'home'), create: true, env: { HOME: scratch } })
  ctx.config = structuredClone(ctx.config)
  ctx.config.snapshots.min_free_bytes = 0
})

afterEach(() => {
  ctx.db.close()
  ctx.store.close()
  // Read-only directories keep their names even from their owner.
  execFileSync('chmod', ['-R', 'u+rwX', scratch])
  rmSync(scratch, { recursive: true, force: true })
})

const out = (name: string) => join(scratch, name)
const snapshot = () => takeSnapshot(ctx, { type: 'manual' })
const find = (of: Snapshot, path: string) => entryAt(ctx.store, rootTreeOf(ctx.store, of.root), path)
const hex = (id: Id) => Buffer.from(id, 'latin1').toString('hex')

/** A snapshot row of a tree that no disk would give so easily. */
async function snapshotOf(
  build: (put: (bytes: Uint8Array) => Id) => Entry[],
  root: Partial<Entry> = {},
): Promise<Snapshot> {
  const writer = await ctx.store.writer()
  const content = writer.put(encodeTree(build(bytes => writer.put(bytes))))
  const rootId = writer.put(encodeTree([{ ...blankEntry(ROOT_NAME, 'dir'), mode: 0o755, ...root, content }]))
  writer.commit()
  writer.close()
  return ctx.db.addSnapshot(makeSnapshot('of a tree', { root: rootId, createdAt: 0 }))
}

/** Everything that a directory can hold, made by the system's own means. */
function makeEverything(): void {
  writeFileSync(join(work, 'plain.txt'), 'hello\r\n\xff\0')
  writeFileSync(join(work, 'empty'), '')
  writeFileSync(join(work, 'suid'), '#!/bin/sh\n')
  chmodSync(join(work, 'suid'), 0o4755)
  mkdirSync(join(work, 'dir/empty-dir'), { recursive: true })
  mkdirSync(join(work, 'a.b'))
  writeFileSync(join(work, 'dir/first'), 'linked')
  linkSync(join(work, 'dir/first'), join(work, 'a.b/second'))
  linkSync(join(work, 'dir/first'), join(work, 'zzz'))
  chmodSync(join(work, 'dir'), 0o555)
  for (const name of [
    Buffer.from([0xff, 0xfe, 0x41]),
    Buffer.from('new\nline'),
    Buffer.from('ü😀 '),
    Buffer.from('-rf'),
    Buffer.from('a..b'),
    Buffer.alloc(255, 0xe9),
  ]) {
    writeFileSync(Buffer.concat([Buffer.from(`${work}/`), name]), name)
  }
  symlinkSync('/etc/passwd', join(work, 'absolute-link'))
  symlinkSync('../../outside', join(work, 'escaping-link'))
  symlinkSync(Buffer.alloc(300, 0xfd), join(work, 'long-link'))
  execFileSync('mkfifo', [join(work, 'fifo')])
  if (isRoot) {
    execFileSync('mknod', [join(work, 'null'), 'c', '1', '3'])
    execFileSync('mknod', [join(work, 'disk'), 'b', '259', '300000'])
    writeFileSync(join(work, 'owned'), 'x')
    chownSync(join(work, 'owned'), 3_000_000, 4_000_000)
    // Only root captures and archives what has no rights at all.
    writeFileSync(join(work, 'no-rights'), 'x')
    chmodSync(join(work, 'no-rights'), 0)
  }
  lutimesSync(join(work, 'long-link'), 1_600_000_000.5, 1_600_000_000.5)
  utimesSync(join(work, 'plain.txt'), 1_700_000_000.123_456, 1_700_000_000.123_456)
  utimesSync(join(work, 'empty'), -5.5, -5.5)
  const root = addon.openRoot(Buffer.from(work))
  addon.utimesAt(root, 'suid', 1_234_567_890_123_456_789n)
  addon.setXattrs(root, 'plain.txt', xattrs({ 'user.a=b%': '\0\n=\xff', 'user.plain': 'value' }))
  addon.setXattrs(root, 'a.b', xattrs({ 'user.dir': 'd' }))
  addon.close(root)
  writeFileSync(
    join(work, 'large'),
    Buffer.alloc(3 * MIB + 17).map((_, i) => (i * 2_654_435_761) >>> 13),
  )
  writeFileSync(join(work, 'sparse-large'), 'start')
  truncateSync(join(work, 'sparse-large'), 20 * MIB)
  writeFileSync(join(work, 'sparse-small'), 'x')
  truncateSync(join(work, 'sparse-small'), 64 * 1024)
  writeFileSync(join(work, 'all-hole'), '')
  truncateSync(join(work, 'all-hole'), 100 * 1024)
}

function xattrs(values: Record<string, string>): Buffer {
  const parts = Object.entries(values)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => {
      const lengths = Buffer.alloc(6)
      lengths.writeUInt16LE(name.length)
      lengths.writeUInt32LE(value.length, 2)
      return [lengths.subarray(0, 2), Buffer.from(name, 'latin1'), lengths.subarray(2), Buffer.from(value, 'latin1')]
    })
  return Buffer.concat(parts)
}

function deepPath(components: number): string {
  const name = 'd'.repeat(200)
  const root = addon.openRoot(Buffer.from(work))
  let path = ''
  for (let i = 0; i < components; i++) {
    path = path === '' ? name : `${path}/${name}`
    addon.mkdirAt(root, path, 0o755)
  }
  const fd = addon.openAt(root, `${path}/bottom`, 0o102, 0o644)
  addon.close(fd)
  addon.close(root)
  return `${path}/bottom`
}

describe('round trip', () => {
  it.each(['x.tar.zst', 'x.tzst', 'x.tar.gz', 'x.tgz', 'x.TAR'])(
    'of everything a directory can hold, as %s',
    async name => {
      makeEverything()
      const bottom = deepPath(25)
      const before = await snapshot()
      const exported = await exportSnapshot(ctx, before.id, out(name))
      expect(exported).toMatchObject({
        file: out(name),
        files: before.files,
        leftOut: [],
        bytes: statSync(out(name)).size,
      })
      expect(statSync(out(name)).mode & 0o777).toBe(0o600)
      const imported = await importArchive(ctx, out(name), { label: 'back again' })
      expect(hex(imported.snapshot.root)).toBe(hex(before.root))
      expect(imported.snapshot).toMatchObject({
        type: 'import',
        label: 'back again',
        parent: undefined,
        files: before.files,
        bytes: before.bytes,
      })
      expect(ctx.db.head).toBe(before.id)
      expect(bottom.length).toBeGreaterThan(4096)
      expect(find(imported.snapshot, bottom)?.kind).toBe('file')
    },
  )

  it('into another store, where nothing is known yet, and back onto the disk', async () => {
    makeEverything()
    const before = await snapshot()
    await exportSnapshot(ctx, before.id, out('x.tar.zst'))
    const other = join(scratch, 'other')
    mkdirSync(other)
    const there = await openContext({ cwd: other, home: join(scratch, 'home2'), create: true, env: { HOME: scratch } })
    try {
      const { snapshot: imported } = await importArchive(there, out('x.tar.zst'))
      expect(hex(imported.root)).toBe(hex(before.root))
      await rollback(there, imported.id, { all: true })
      const after = await takeSnapshot(there, { type: 'manual' })
      expect(hex(after.root)).toBe(hex(before.root))
      expect(statSync(join(other, 'sparse-large')).blocks * 512).toBeLessThan(MIB)
      await undo(there, {})
      expect(readdirSync(other)).toEqual([])
      expect(readdirSync(join(scratch, 'home2/tmp'))).toEqual([])
    } finally {
      there.db.close()
      there.store.close()
    }
  })

  it('does not depend on whether a large file was stored in chunks with holes by another file', async () => {
    truncateSync(openEmpty('sparse'), 3 * MIB)
    writeFileSync(join(work, 'zeros'), Buffer.alloc(3 * MIB))
    const before = await snapshot()
    await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(hex(imported.root)).toBe(hex(before.root))
    expect([find(imported, 'sparse')?.sparse, find(imported, 'zeros')?.sparse]).toEqual([true, false])
  })

  it('keeps what is unknown unknown, so that a rollback to it deletes nothing', async () => {
    writeFileSync(join(work, '.gitignore'), 'node_modules\n*.log\n')
    mkdirSync(join(work, '.git'))
    mkdirSync(join(work, 'node_modules'))
    writeFileSync(join(work, 'node_modules/x'), 'x')
    writeFileSync(join(work, 'a b.log'), 'log')
    writeFileSync(join(work, '.savepointignore'), 'secret\n')
    writeFileSync(join(work, 'secret'), 's')
    const before = await snapshot()
    await exportSnapshot(ctx, 'HEAD', out('x.tar.gz'))
    expect(execFileSync('tar', ['tzf', out('x.tar.gz')]).toString()).not.toMatch(/node_modules|secret|\.log/)
    const { snapshot: imported } = await importArchive(ctx, out('x.tar.gz'))
    expect(hex(imported.root)).toBe(hex(before.root))
    expect(find(imported, 'secret')).toMatchObject({ kind: 'unknown', reason: 'excluded' })
    writeFileSync(join(work, '.savepointignore'), '')
    await rollback(ctx, imported.id, { all: true })
    expect(readFileSync(join(work, 'secret'), 'utf8')).toBe('s')
  })

  it('of random trees', async () => {
    const name = fc
      .uint8Array({ minLength: 1, maxLength: 120 })
      .map(bytes => Buffer.from(bytes).toString('latin1').replace(/[/\0]/g, '_'))
      .filter(raw => raw !== '.' && raw !== '..')
    const common = {
      mode: fc.integer({ min: 0, max: 0o7777 }),
      uid: fc.oneof(fc.nat(70_000), fc.integer({ min: 2_097_150, max: 0xffff_fffe })),
      gid: fc.oneof(fc.nat(70_000), fc.constant(0xffff_fffe)),
      xattrs: fc.option(
        fc
          .dictionary(
            fc.stringMatching(/^user\.[a-z=%]{1,9}$/),
            fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes).toString('latin1')),
            { minKeys: 1, maxKeys: 3 },
          )
          .map(xattrs),
        { nil: undefined },
      ),
    }
    const time = { mtimeNs: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 2000 }),
      fc.nat(9000).map(size => Buffer.alloc(size)),
    )
    const leaf = fc.oneof(
      fc.record({ kind: fc.constant('file'), bytes, sparse: fc.boolean(), ...common, ...time }),
      fc.record({
        kind: fc.constant('link'),
        target: fc
          .uint8Array({ minLength: 1, maxLength: 300 })
          .map(value => Buffer.from(value).toString('latin1').replaceAll('\0', 'x')),
        ...common,
        ...time,
      }),
      fc.record({ kind: fc.constant('fifo'), ...common, ...time }),
      fc.record({
        kind: fc.constantFrom('char', 'block'),
        rdevMajor: fc.nat(4095),
        rdevMinor: fc.nat(1_048_575),
        ...common,
        ...time,
      }),
      fc.record({ kind: fc.constant('unknown'), reason: fc.constantFrom('excluded', 'mount', 'purged') }),
    )
    const { tree } = fc.letrec(tie => ({
      tree: fc.dictionary(
        name,
        fc.oneof({ maxDepth: 4 }, leaf, fc.record({ kind: fc.constant('dir'), children: tie('tree'), ...common })),
        { maxKeys: 5 },
      ),
    }))
    // biome-ignore lint/suspicious/noExplicitAny: arbitraries of a recursive shape have no static type
    const build = (nodes: Record<string, any>, put: (bytes: Uint8Array) => Id): Entry[] =>
      Object.keys(nodes)
        .sort((a, b) => (a < b ? -1 : 1))
        .map(name => {
          const { bytes, children, ...fields } = nodes[name]
          const entry: Entry = { ...blankEntry(name, fields.kind), ...fields }
          if (children) entry.content = put(encodeTree(build(children, put)))
          else if (bytes) Object.assign(entry, { content: put(bytes), size: bytes.length })
          return fields.kind === 'unknown' ? unknownEntry(name, fields.reason) : entry
        })
    await fc.assert(
      fc.asyncProperty(tree, fc.constantFrom('tar', 'tar.gz', 'tar.zst'), async (nodes, ending) => {
        // biome-ignore lint/suspicious/noExplicitAny: as above
        const before = await snapshotOf(put => build(nodes as any, put), { mode: 0o1777, uid: 12, gid: 34 })
        const file = out(`p.${ending}`)
        rmSync(file, { force: true })
        await exportSnapshot(ctx, before.id, file, { withKept: true })
        const { snapshot: imported } = await importArchive(ctx, file)
        expect(hex(imported.root)).toBe(hex(before.root))
        const listed = spawnSync('tar', ['tf', file])
        expect([listed.status, listed.stderr.toString()]).toEqual([0, ''])
      }),
      { numRuns: 60 },
    )
  })

  it('numbers hard links after their first path, whatever stands first in the archive', async () => {
    const before = await snapshotOf(put => {
      const file = {
        ...blankEntry('', 'file'),
        mode: 0o644,
        content: put(Buffer.from('x')),
        size: 1,
        linkGroup: linkGroupNumber('a.b'),
      }
      const inside = put(encodeTree([{ ...file, name: 'z' }]))
      return [
        { ...blankEntry('a', 'dir'), content: inside },
        { ...file, name: 'a.b' },
      ]
    })
    await exportSnapshot(ctx, before.id, out('x.tar'))
    expect(execFileSync('tar', ['tvf', out('x.tar')]).toString()).toContain('./a.b link to ./a/z')
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(hex(imported.root)).toBe(hex(before.root))
  })
})

function openEmpty(name: string): string {
  writeFileSync(join(work, name), '')
  return join(work, name)
}

describe('kept files', () => {
  beforeEach(() => {
    mkdirSync(join(work, 'sub'))
    for (const name of ['.env', 'sub/.env.local', 'sub/code.ts', 'environment'])
      writeFileSync(join(work, name), `content of ${name}`)
  })

  it('are left out, listed, and left alone by a rollback to the import', async () => {
    await snapshot()
    const result = await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    expect(result).toMatchObject({ leftOut: ['.env', 'sub/.env.local'], files: 2 })
    expect(readFileSync(out('x.tar')).includes('content of .env')).toBe(false)
    const { snapshot: imported, files } = await importArchive(ctx, out('x.tar'))
    expect(files).toBe(2)
    writeFileSync(join(work, '.env'), 'newer')
    await rollback(ctx, imported.id, { all: true })
    expect(readFileSync(join(work, '.env'), 'utf8')).toBe('newer')
  })

  it('are in it when asked for', async () => {
    const before = await snapshot()
    expect(await exportSnapshot(ctx, 'HEAD', out('x.tar'), { withKept: true })).toMatchObject({ leftOut: [], files: 4 })
    expect(hex((await importArchive(ctx, out('x.tar'))).snapshot.root)).toBe(hex(before.root))
  })

  it('are those that the configuration names', async () => {
    ctx.config.snapshots.exclude.keep = ['/sub/*.ts', '!nothing']
    await snapshot()
    expect((await exportSnapshot(ctx, 'HEAD', out('x.tar'))).leftOut).toEqual(['sub/code.ts'])
  })
})

describe('GNU tar', () => {
  it('reads what we write: names, modes, owners, times, links, holes, xattrs', async () => {
    makeEverything()
    await snapshot()
    await exportSnapshot(ctx, 'HEAD', out('x.tar.zst'))
    const target = join(scratch, 'extracted')
    mkdirSync(target)
    const result = spawnSync('tar', [
      '--zstd',
      '--xattrs',
      '--xattrs-include=*',
      '-xpf',
      out('x.tar.zst'),
      '-C',
      target,
    ])
    expect([result.status, result.stderr.toString()]).toEqual([0, ''])
    const there = await openContext({ cwd: target, home: join(scratch, 'home2'), create: true, env: { HOME: scratch } })
    try {
      const again = await takeSnapshot(there, { type: 'manual' })
      const [mine, theirs] = [listOf(ctx, requireHead(ctx)), listOf(there, again)]
      expect(theirs).toEqual(mine)
      expect(statSync(join(target, 'sparse-large')).blocks * 512).toBeLessThan(MIB)
      expect(statSync(join(target, 'zzz')).nlink).toBe(3)
    } finally {
      there.db.close()
      there.store.close()
    }
  })

  it('lists paths beyond 4096 bytes byte for byte', async () => {
    const bottom = deepPath(25)
    await snapshot()
    await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    const listed = execFileSync('tar', ['tf', out('x.tar'), '--quoting-style=literal'])
      .toString('latin1')
      .split('\n')
    expect(listed).toContain(`./${bottom}`)
  })

  test.each([
    ['gnu', '--format=gnu'],
    ['gnu, sparse', '--format=gnu', '-S'],
    ['posix', '--format=posix', '--xattrs', '--xattrs-include=*'],
    ['posix, sparse', '--format=posix', '-S'],
    ['gnu, gzip', '-z'],
    ['gnu, zstd', '--zstd'],
    ['without "./"', '--format=posix', '--transform=s,^\\./,,'],
  ])('writes what we read: %s', async (name, ...options) => {
    makeEverything()
    if (name.startsWith('without')) rmSync(join(work, '-rf'))
    const before = await snapshot()
    execFileSync('tar', [...options, '-cf', out('x.archive'), '-C', work, '.'])
    const { snapshot: imported } = await importArchive(ctx, out('x.archive'))
    const exact = name.startsWith('posix')
    expect(withoutDetails(listOf(ctx, imported), exact)).toEqual(withoutDetails(listOf(ctx, before), exact))
  })

  it('writes archives without their parents and their root: those are made', async () => {
    mkdirSync(join(work, 'a/b'), { recursive: true })
    writeFileSync(join(work, 'a/b/c'), 'x')
    chmodSync(work, 0o750)
    await snapshot()
    execFileSync('tar', ['-czf', out('x.tgz'), '-C', work, 'a/b/c'])
    const { snapshot: imported } = await importArchive(ctx, out('x.tgz'))
    expect(find(imported, 'a')).toMatchObject({ kind: 'dir', mode: 0o755, uid: process.getuid?.() })
    expect(ctx.store.tree(imported.root)[0]).toMatchObject({ mode: 0o750 })
  })

  it('writes the old format without types and magic', async () => {
    mkdirSync(join(work, 'dir'))
    writeFileSync(join(work, 'dir/file'), 'x')
    const before = await snapshot()
    execFileSync('tar', ['--format=v7', '-cf', out('x.tar'), '-C', work, '.'])
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(withoutDetails(listOf(ctx, imported), false)).toEqual(withoutDetails(listOf(ctx, before), false))
  })
})

const requireHead = (of: Context): Snapshot => of.db.snapshot(of.db.head!)!

interface Listed {
  path: string
  entry: Partial<Entry>
}

function listOf(of: Context, what: Snapshot): Listed[] {
  const list: Listed[] = []
  const visit = (tree: Id, directory: string) => {
    for (const entry of of.store.tree(tree)) {
      const path = `${directory}/${entry.name}`
      if (entry.kind === 'dir') visit(entry.content, path)
      list.push({ path, entry: entry.kind === 'dir' ? { ...entry, content: '' } : entry })
    }
  }
  visit(rootTreeOf(of.store, what.root), '')
  return list
}

/** Formats other than PAX know no xattrs and no fractions of seconds, and none says which files are sparse without -S. */
const withoutDetails = (list: Listed[], exact: boolean): Listed[] =>
  list.map(({ path, entry }) => ({
    path,
    entry: {
      ...entry,
      sparse: false,
      xattrs: undefined,
      ...(exact ? {} : { mtimeNs: entry.mtimeNs! / 1_000_000_000n - (entry.mtimeNs! < 0n ? 1n : 0n) }),
    },
  }))

// --- archives that mean harm ---

const header = (fields: Partial<TarHeader>): Buffer =>
  encodeTarHeader({
    name: 'x',
    mode: 0o644,
    uid: 0,
    gid: 0,
    size: 0,
    mtimeSeconds: 0,
    type: '0',
    linkname: '',
    devMajor: 0,
    devMinor: 0,
    ...fields,
  })
const padded = (body: string | Buffer): Buffer => {
  const bytes = Buffer.from(body as string)
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 511)])
}
const file = (name: string, body = 'content', fields: Partial<TarHeader> = {}) =>
  Buffer.concat([header({ name, size: Buffer.byteLength(body), ...fields }), padded(body)])
const pax = (records: Record<string, string>, type = 'x') => {
  const body = encodePax(Object.entries(records))
  return Buffer.concat([header({ name: 'pax', type, size: body.length }), padded(body)])
}
const long = (type: 'L' | 'K', text: string) =>
  Buffer.concat([header({ name: '././@LongLink', type, size: text.length + 1 }), padded(`${text}\0`)])
const END = Buffer.alloc(1024)
const write = (...parts: Buffer[]): string => {
  writeFileSync(out('bad.tar'), Buffer.concat(parts))
  return out('bad.tar')
}
const changed = (block: Buffer, at: number, value: string): Buffer => {
  const copy = Buffer.from(block)
  copy.write(value, at, 'latin1')
  copy.write('        ', 148, 'latin1')
  const sum = copy.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return copy
}

async function refused(path: string, code = 'archive.unsafe', limits = importLimits): Promise<Error> {
  const [rows, operations] = [ctx.db.snapshots(true).length, ctx.db.operations().length]
  const error = await importArchive(ctx, path, {}, limits).then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  )
  expect(error).toMatchObject({ code, name: 'SavepointError' })
  expect([ctx.db.snapshots(true).length, ctx.db.operations().length]).toEqual([rows, operations])
  const spool = join(ctx.home, 'tmp')
  expect(existsSync(spool) ? readdirSync(spool) : []).toEqual([])
  return error!
}

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

async function makeAndExport(name: string): Promise<void> {
  writeFileSync(join(work, 'a'), 'content')
  await snapshot()
  await exportSnapshot(ctx, 'HEAD', out(name))
}

describe('export', () => {
  it('never overwrites without force, and only regular files with it', async () => {
    await makeAndExport('x.tar')
    writeFileSync(out('x.tar'), 'precious')
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar'))).rejects.toMatchObject({
      code: 'usage',
      hint: expect.stringContaining('--force'),
    })
    expect(readFileSync(out('x.tar'), 'utf8')).toBe('precious')
    ctx.force = true
    await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    expect((await importArchive(ctx, out('x.tar'))).files).toBe(1)
    symlinkSync('x.tar', out('link.tar'))
    await expect(exportSnapshot(ctx, 'HEAD', out('link.tar'))).rejects.toMatchObject({ code: 'usage' })
  })

  it('names the file relative to cwd, and refuses what it cannot write', async () => {
    writeFileSync(join(work, 'a'), 'x')
    await snapshot()
    expect((await exportSnapshot(ctx, 'HEAD', '../here.tgz')).files).toBe(1)
    expect(existsSync(out('here.tgz'))).toBe(true)
    for (const name of ['x.zip', 'x', '-', ''])
      await expect(exportSnapshot(ctx, 'HEAD', name)).rejects.toMatchObject({ code: 'usage' })
    await expect(exportSnapshot(ctx, 'HEAD', 'missing/x.tar')).rejects.toMatchObject({ code: 'io.failed' })
    await expect(exportSnapshot(ctx, 'nothing', 'x.tar')).rejects.toMatchObject({ code: 'snapshot.unknown' })
  })

  it('leaves nothing behind when it fails or is cancelled', async () => {
    writeFileSync(join(work, 'a'), Buffer.alloc(5 * MIB, 'abc'))
    writeFileSync(join(work, 'b'), 'x')
    await snapshot()
    const before = readdirSync(scratch)
    ctx.signal = AbortSignal.abort()
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar.zst'))).rejects.toMatchObject({ code: 'cancelled' })
    await expect(importArchive(ctx, write(file('a'), END))).rejects.toMatchObject({ code: 'cancelled' })
    ctx.signal = undefined
    const packs = join(ctx.home, 'store/packs')
    for (const name of readdirSync(packs)) truncateSync(join(packs, name), 100)
    ctx.store.refresh()
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar.zst'))).rejects.toMatchObject({ code: 'store.damaged' })
    rmSync(out('bad.tar'))
    expect(readdirSync(scratch)).toEqual(before)
  })

  it('reports progress, and import does too', async () => {
    const seen: string[] = []
    ctx.progress = ({ phase, files }) => seen.push(`${phase} ${files}`)
    await makeAndExport('x.tar')
    await importArchive(ctx, out('x.tar'))
    expect(seen).toContain('exporting 1')
    expect(seen.at(-1)).toBe('importing 1')
  })
})

describe('import', () => {
  it('is an operation that undo passes over, and removes leftovers of a killed one', async () => {
    await makeAndExport('x.tar')
    mkdirSync(join(ctx.home, 'tmp'), { recursive: true })
    writeFileSync(join(ctx.home, 'tmp/import-0123'), 'left behind')
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(ctx.db.operations().at(-1)).toMatchObject({
      kind: 'import',
      state: 'fixed',
      detail: { snapshot: imported.id },
    })
    expect(readdirSync(join(ctx.home, 'tmp'))).toEqual([])
    await expect(importArchive(ctx, out('x.tar'), { label: 'snap_x' })).rejects.toMatchObject({ code: 'name.invalid' })
  })
})

describe('records', () => {
  it('count their own length', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.stringMatching(/^[a-z.]{1,9}$/), fc.string({ unit: 'binary-ascii', maxLength: 1200 }))),
        records => {
          expect(decodePax(encodePax(records as [string, string][]))).toEqual(records)
        },
      ),
    )
    expect([93, 94].map(length => encodePax([['a', 'x'.repeat(length)]]).length)).toEqual([99, 101])
  })

  it('say times exactly', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        time => decodePaxTime(encodePaxTime(time)) === time,
      ),
    )
    expect([encodePaxTime(-1_500_000_000n), encodePaxTime(1n), encodePaxTime(0n)]).toEqual(['-1.5', '0.000000001', '0'])
  })
})
