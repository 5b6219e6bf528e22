/** `log`, `branches` and `snapshots`: the timeline as people see it, without what is deleted. */
import type { Snapshot } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import type { LogNode } from './results.ts'
import { requireRun } from './rollback.ts'
import { asShown, shownParent } from './shown-snapshot.ts'

/** Newest first. The parent shown is the nearest one that is not deleted. */
export function log(ctx: Context): LogNode[] {
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  const tags = new Map<string, string[]>()
  for (const [name, id] of ctx.db.tags()) tags.set(id, [...(tags.get(id) ?? []), name])
  const head = ctx.db.head
  const live = [...all.values()].filter(snapshot => snapshot.deletedAt === undefined)
  const nodes = new Map(
    live.map(snapshot => [
      snapshot.id,
      {
        snapshot: asShown(ctx, snapshot, id => all.get(id)),
        tags: tags.get(snapshot.id) ?? [],
        isHead: snapshot.id === head,
        children: [] as string[],
        isLeaf: true,
        shownParent: shownParent(id => all.get(id), snapshot),
      },
    ]),
  )
  for (const node of nodes.values()) {
    const parent = node.shownParent === undefined ? undefined : nodes.get(node.shownParent)
    if (!parent) continue
    parent.children.push(node.snapshot.id)
    parent.isLeaf = false
  }
  return [...nodes.values()].reverse()
}

/** The ends of the tree: each is a branch. */
export const branches = (ctx: Context): LogNode[] => log(ctx).filter(node => node.isLeaf)

export function listSnapshots(ctx: Context, run: string | undefined): Snapshot[] {
  const id = run === undefined ? undefined : requireRun(ctx, run).id
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  return [...all.values()]
    .filter(snapshot => snapshot.deletedAt === undefined && (id === undefined || snapshot.run === id))
    .map(snapshot => asShown(ctx, snapshot, other => all.get(other)))
}
