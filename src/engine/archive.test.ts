/** `export` and `import`: what goes out comes back. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { deepPath, makeEverything, xattrs } from '../../test/support/archive-everything.ts'
import {
  ctx,
  find,
  hex,
  makeAndExport,
  out,
  scratch,
  snapshot,
  snapshotOf,
  work,
} from '../../test/support/archive-scratch.ts'
import { END, file, write } from '../../test/support/archive-tar.ts'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { linkGroupNumber, unknownEntry } from '../targets/dir/dir-node.ts'
import { decodePax, decodePaxTime, encodePax, encodePaxTime } from './archive-pax.ts'
import { exportSnapshot } from './export.ts'
import { importArchive } from './import.ts'
import { openContext } from './open.ts'
import { rollback } from './rollback.ts'
import { takeSnapshot } from './snapshot.ts'
import { undo } from './undo.ts'

const MIB = 1024 * 1024

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
      fc.record({
        kind: fc.constant('unknown'),
        reason: fc.constant('excluded'),
        found: fc.constantFrom('dir', 'link'),
      }),
      fc.record({
        kind: fc.constant('unknown'),
        reason: fc.constant('too-large'),
        found: fc.constant('file'),
        limit: fc.nat(),
      }),
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
          const { kind, reason, found, limit } = fields
          return kind === 'unknown' ? unknownEntry(name, reason, found, limit) : entry
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
  it('is an operation that undo takes back, and removes leftovers of a killed one', async () => {
    await makeAndExport('x.tar')
    mkdirSync(join(ctx.home, 'tmp'), { recursive: true })
    writeFileSync(join(ctx.home, 'tmp/import-0123'), 'left behind')
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(ctx.db.operations().at(-1)).toMatchObject({
      kind: 'import',
      state: 'done',
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
