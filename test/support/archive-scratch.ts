/** A context of the engine in a directory of its own for each test of `export` and `import`. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { importLimits } from '../../src/engine/archive-unsafe.ts'
import type { Context } from '../../src/engine/context.ts'
import { exportSnapshot } from '../../src/engine/export.ts'
import { importArchive } from '../../src/engine/import.ts'
import { openContext } from '../../src/engine/open.ts'
import { takeSnapshot } from '../../src/engine/snapshot.ts'
import { blankEntry, type Entry, type Id } from '../../src/model/entry.ts'
import { makeSnapshot } from '../../src/model/fixture-snapshot.ts'
import type { Snapshot } from '../../src/model/snapshot.ts'
import { encodeTree } from '../../src/store/tree-codec.ts'
import { entryAt } from '../../src/store/tree-lookup.ts'
import { ROOT_NAME, rootTreeOf } from '../../src/targets/dir/capture.ts'

/** Of the running test. */
export let scratch: string
export let work: string
export let ctx: Context

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

export const out = (name: string) => join(scratch, name)
export const snapshot = () => takeSnapshot(ctx, { type: 'manual' })
export const find = (of: Snapshot, path: string) => entryAt(ctx.store, rootTreeOf(ctx.store, of.root), path)
export const hex = (id: Id) => Buffer.from(id, 'latin1').toString('hex')

/** A snapshot row of a tree that no disk would give so easily. */
export async function snapshotOf(
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

export async function makeAndExport(name: string): Promise<void> {
  writeFileSync(join(work, 'a'), 'content')
  await snapshot()
  await exportSnapshot(ctx, 'HEAD', out(name))
}

export async function refused(path: string, code = 'archive.unsafe', limits = importLimits): Promise<Error> {
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
