/** `log`, `branches` and `snapshots`: the timeline as people see it, without what is deleted. */
import type { Snapshot } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import type { LogNode } from './results.ts'
import { requireRun } from './rollback.ts'

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
        snapshot,
        tags: tags.get(snapshot.id) ?? [],
        isHead: snapshot.id === head,
        children: [] as string[],
        isLeaf: true,
        shownParent: shownParent(all, snapshot),
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
  return ctx.db.snapshots().filter(snapshot => id === undefined || snapshot.run === id)
}

/** The nearest ancestor that is not deleted. */
export function shownParent(all: Map<string, Snapshot>, snapshot: Snapshot): string | undefined {
  let parent = snapshot.parent
  while (parent !== undefined && all.get(parent)?.deletedAt !== undefined) parent = all.get(parent)?.parent
  return parent
}
