/** `verify`: reads every block, checks every object against its id, and every snapshot for completeness. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { joinRaw, type Raw, showPath } from '../model/raw-path.ts'
import type { Id } from '../model/entry.ts'
import { scanPacks, type PackScan } from '../store/scan-packs.ts'
import { OBJECT } from '../store/pack-format.ts'
import { decodeRecipe } from '../store/recipe.ts'
import { decodeTree } from '../store/tree-codec.ts'
import { rebuildIndex } from '../store/rebuild-index.ts'
import { withEverythingLocked, type OpenTimeline } from './all-timelines.ts'
import type { Context } from './context.ts'
import type { VerifyProblem, VerifyResult } from './results.ts'

const LISTED_PATHS = 20

export function verify(ctx: Context, options: { repair?: boolean }): Promise<VerifyResult> {
  return withEverythingLocked(ctx, 'verify', async timelines => {
    const scan = scanPacks(ctx.store, progress => ctx.progress?.({ phase: 'verifying', files: progress.objects, bytes: progress.bytes }))
    const repaired = options.repair ? repair(ctx, timelines, scan) : []
    const problems = [...(options.repair ? [] : indexProblems(ctx, scan)), ...scan.problems.map(what => ({ what, snapshots: [], paths: [] }))]
    let snapshots = 0
    for (const timeline of timelines) {
      for (const snapshot of timeline.db.snapshots(true)) {
        snapshots++
        const missing = missingPaths(ctx, scan, snapshot.root)
        if (missing.length === 0) continue
        problems.push({
          what: `${snapshot.id} has lost ${missing.length} path${missing.length === 1 ? '' : 's'}`,
          snapshots: [snapshot.id],
          paths: missing.slice(0, LISTED_PATHS).map(showPath),
        })
      }
    }
    return { objects: scan.objects.size, bytes: scan.bytes, snapshots, problems, repaired }
  })
}

/** Objects that are intact but that the index does not find, and rows that point to nothing. */
function indexProblems(ctx: Context, scan: PackScan): VerifyProblem[] {
  const problems: VerifyProblem[] = []
  const lost = [...scan.objects].filter(([id, found]) => {
    const row = ctx.store.index.find(id)
    return !row || (row.kind !== OBJECT.clone && (row.pack !== found.pack || row.block !== found.block || row.offset !== found.offset) && !scan.places.has(`${row.pack}:${row.block}`))
  })
  if (lost.length > 0) {
    problems.push({ what: `the index does not find ${lost.length} intact objects: \`savepoint verify --repair\` rebuilds it`, snapshots: [], paths: [] })
  }
  const rows = ctx.store.index.objectCount()
  if (rows > scan.objects.size) {
    problems.push({ what: `the index has ${rows - scan.objects.size} rows whose objects are damaged or missing`, snapshots: [], paths: [] })
  }
  return problems
}

function repair(ctx: Context, timelines: OpenTimeline[], scan: PackScan): string[] {
  const done = rebuildIndex(ctx.store, scan)
  for (const { target } of timelines) rmSync(join(target.directory, 'statcache'), { force: true })
  ctx.store.refresh()
  return done
}

/** Paths whose tree or content cannot be produced from intact objects. Unchanged subtrees are looked at once. */
function missingPaths(ctx: Context, scan: PackScan, root: Id): Raw[] {
  const missing: Raw[] = []
  const visit = (tree: Id, path: Raw) => {
    if (scan.complete.has(tree)) return
    const before = missing.length
    if (!scan.objects.has(tree)) {
      missing.push(path === '' ? '.' : path)
      return
    }
    for (const entry of decodeTree(ctx.store.read(tree))) {
      const here = joinRaw(path, entry.name)
      if (entry.kind === 'dir') visit(entry.content, here)
      else if (entry.kind === 'file' && !isIntact(ctx, scan, entry.content)) missing.push(here)
    }
    if (missing.length === before) scan.complete.add(tree)
  }
  visit(root, '')
  return missing.map(path => path.replace(/^root\//, ''))
}

function isIntact(ctx: Context, scan: PackScan, content: Id): boolean {
  const found = scan.objects.get(content)
  if (!found) return false
  if (found.kind !== OBJECT.recipe) return true
  return decodeRecipe(ctx.store.readAt(found)).every(item => 'hole' in item || scan.objects.has(item.chunk))
}
