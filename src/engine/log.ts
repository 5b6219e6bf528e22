/** `log`, `branches` and `snapshots`: the timeline as people see it, without what is deleted. */
import type { Snapshot } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { Context } from './context.ts'
import type { LogNode } from './results.ts'
import { requireRun } from './rollback.ts'
import { asShown, shownParent } from './shown-snapshot.ts'

/** Kept for those who ask again and again, as the clients of a daemon do. */
const known = new WeakMap<TimelineDb, { version: string; nodes: readonly LogNode[] }>()

/** Newest first. The parent shown is the nearest one that is not deleted. */
export function log(ctx: Context): LogNode[] {
  const version = ctx.db.version.now()
  const kept = known.get(ctx.db)
  if (kept && kept.version === version) return [...kept.nodes]
  const nodes = ctx.db.atOneMoment(() => nodesOf(ctx))
  // Asked for before they were read: if somebody wrote meanwhile, they are read again.
  // An archive can go without a word.
  const hasArchive = nodes.some(({ snapshot }) => snapshot.backend === 'archive')
  if (version !== undefined && !hasArchive) known.set(ctx.db, { version, nodes })
  return [...nodes]
}

/** Equal to an earlier one: the rows are the same, and with them what `log` shows. Undefined: nobody can tell. */
export function logVersion(ctx: Context): string | undefined {
  const version = ctx.db.version.now()
  if (known.get(ctx.db)?.version !== version) log(ctx)
  return known.get(ctx.db)?.version === version ? version : undefined
}

/** They are the same for all who ask, so nobody can change them. */
function nodesOf(ctx: Context): LogNode[] {
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  const tags = Map.groupBy(ctx.db.tags(), ([, id]) => id)
  const head = ctx.db.head
  const live = [...all.values()].filter(snapshot => snapshot.deletedAt === undefined)
  const parents = new Map(live.map(snapshot => [snapshot.id, shownParent(id => all.get(id), snapshot)]))
  const children = Map.groupBy(live, ({ id }) => parents.get(id))
  return live.reverse().map(snapshot => {
    const { id } = snapshot
    const below = (children.get(id) ?? []).map(child => child.id)
    return frozen({
      snapshot: frozen(asShown(ctx, snapshot, other => all.get(other))),
      tags: frozen((tags.get(id) ?? []).map(([name]) => name)),
      isHead: id === head,
      children: frozen(below),
      isLeaf: below.length === 0,
      shownParent: parents.get(id),
    })
  })
}

const frozen = <T>(value: T): T => Object.freeze(value) as T

/** The ends of the tree: each is a branch. */
export const branches = (ctx: Context): LogNode[] => log(ctx).filter(node => node.isLeaf)

export function listSnapshots(ctx: Context, run: string | undefined): Snapshot[] {
  const id = run === undefined ? undefined : requireRun(ctx, run).id
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  return [...all.values()]
    .filter(snapshot => snapshot.deletedAt === undefined && (id === undefined || snapshot.run === id))
    .map(snapshot => asShown(ctx, snapshot, other => all.get(other)))
}
