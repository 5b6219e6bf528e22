/** `export` and `import`: what goes out comes back. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deepPath, makeEverything, xattrs } from '../../test/support/archive-everything.ts'
import { ctx, find, hex, out, scratch, snapshot, snapshotOf, work } from '../../test/support/archive-scratch.ts'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { linkGroupNumber, unknownEntry } from '../targets/dir/dir-node.ts'
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
