/** What GNU tar makes of our archives, and we of those of GNU tar. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { deepPath, makeEverything } from '../../test/support/archive-everything.ts'
import { ctx, find, out, scratch, snapshot, work } from '../../test/support/archive-scratch.ts'
import type { Entry, Id } from '../model/entry.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Context } from './context.ts'
import { exportSnapshot } from './export.ts'
import { importArchive } from './import.ts'
import { openContext } from './open.ts'
import { takeSnapshot } from './snapshot.ts'

const MIB = 1024 * 1024

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
      // A state has no times of directories: they are as old as the snapshot.
      expect(statSync(target).mtimeMs).toBe(Math.floor(requireHead(ctx).createdAt / 1000) * 1000)
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
