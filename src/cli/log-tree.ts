/** The tree of snapshots as lines of text, newest first, drawn like `git log --graph`. */
import type { LogNode } from '../index.ts'

export interface TreeLine {
  /** "* ", "| * ", "|/"; '' between two trees. */
  graph: string
  /** Undefined for a line that only joins two branches, or keeps two trees apart. */
  node: LogNode | undefined
}

/** Children come before their parent, and a branch is not interrupted by others that do not start in it. */
export function drawTree(nodes: LogNode[]): TreeLine[] {
  const lines: TreeLine[] = []
  /** Per column the id of the snapshot that the line from above leads to. */
  const lanes: (string | undefined)[] = []
  const shown = new Set(nodes.map(node => node.snapshot.id))
  for (const node of inBranchOrder(nodes, shown)) {
    // What comes next is of another beginning: in one line it would look like the parent of what is above.
    if (lanes.length === 0 && lines.length > 0) lines.push({ graph: '', node: undefined })
    let column = lanes.indexOf(node.snapshot.id)
    if (column < 0) column = lanes.push(node.snapshot.id) - 1
    const others = '| '.repeat(lanes.length - column - 1)
    lines.push({ graph: `${'| '.repeat(column)}* ${others}`, node })
    const parent = parentIn(shown, node)
    if (parent === undefined) {
      lanes.splice(column, 1)
    } else {
      lanes[column] = parent
      // Only the last column can lead where an earlier one leads: branches are drawn one after the other.
      const joined = lanes.indexOf(parent)
      if (joined < column) {
        lines.push({ graph: `${'| '.repeat(column - 1)}|/ ${others}`.trimEnd(), node: undefined })
        lanes.splice(column, 1)
      }
    }
  }
  return lines
}

/** Post-order over the tree; among the children of one snapshot, the branch with the newest snapshot comes first. */
function inBranchOrder(nodes: LogNode[], shown: ReadonlySet<string>): LogNode[] {
  const children = new Map<string | undefined, LogNode[]>()
  const newest = new Map<string, number>()
  const bySeq = nodes.toSorted((a, b) => b.snapshot.seq - a.snapshot.seq)
  for (const node of bySeq) {
    const { id, seq } = node.snapshot
    const parent = parentIn(shown, node)
    const siblings = children.get(parent)
    if (siblings) siblings.push(node)
    else children.set(parent, [node])
    const reached = Math.max(newest.get(id) ?? 0, seq)
    newest.set(id, reached)
    // Parents have lower numbers, so they come later in this loop.
    if (parent !== undefined) newest.set(parent, Math.max(newest.get(parent) ?? 0, reached))
  }
  for (const siblings of children.values()) {
    siblings.sort((a, b) => newest.get(b.snapshot.id)! - newest.get(a.snapshot.id)!)
  }
  const ordered: LogNode[] = []
  // Pre-order with the last branch first, turned around, is post-order with the first branch first.
  const open = [...(children.get(undefined) ?? [])]
  while (open.length > 0) {
    const node = open.pop()!
    ordered.push(node)
    for (const child of children.get(node.snapshot.id) ?? []) open.push(child)
  }
  return ordered.reverse()
}

const parentIn = (shown: ReadonlySet<string>, { shownParent }: LogNode): string | undefined =>
  shownParent !== undefined && shown.has(shownParent) ? shownParent : undefined
