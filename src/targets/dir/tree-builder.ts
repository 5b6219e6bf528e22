/** Makes trees from the bottom up: a directory's tree is built when everything in it is known. */
import type { Entry, Id, UnknownReason } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { encodeTree } from '../../store/tree-codec.ts'
import type { DirNode } from './dir-node.ts'
import type { PassState } from './pass.ts'

/** Reasons that make a snapshot PARTIAL: the user would expect these files to be protected. */
export const partialReasons: ReadonlySet<UnknownReason> = new Set([
  'unreadable',
  'too-large',
  'unstable',
  'other-store',
])

export class TreeBuilder {
  private readonly state: PassState
  /** The tree of the whole, once everything is settled. */
  root: Id = ''

  constructor(state: PassState) {
    this.state = state
  }

  /** One thing less to wait for; when it was the last, the tree is made and the parent told. */
  settle(start: DirNode): void {
    let node: DirNode | undefined = start
    while (node && --node.pending === 0) {
      if (node.entries) this.build(node)
      this.state.options.preserved?.onDone(node.path)
      const { parent } = node as DirNode
      if (!parent) this.root = node.tree
      else if (parent.entries || node.tree !== node.cached?.tree) {
        const entries: Map<Raw, Entry> = this.entriesOf(parent)
        const entry: Entry | undefined = entries.get(node.name)
        if (entry?.kind === 'dir') entry.content = node.tree
      }
      node = parent
    }
  }

  /** The node's entries to be changed: from its cached tree when nothing of its own has changed. */
  entriesOf(node: DirNode): Map<Raw, Entry> {
    if (!node.entries) {
      this.state.changed = true
      node.records = node.cached!.records
      node.entries = new Map()
      for (const entry of this.state.oldTree(node.cached!.tree))
        node.entries.set(entry.name, entry.kind === 'dir' ? { ...entry } : entry)
    }
    return node.entries
  }

  private build(node: DirNode): void {
    for (const { name, ino } of node.linked) {
      const entry = node.entries!.get(name)
      if (entry?.kind === 'file') entry.linkGroup = this.state.links.groupOf(ino)
    }
    const entries = [...node.entries!.values()]
    node.tree = this.state.options.writer.put(encodeTree(entries))
    // The snapshot is compared with the one before, and the next one with it.
    if (node.cached) this.state.options.store.expect(node.tree, entries)
    const files = entries.filter(entry => entry.kind !== 'dir' && entry.kind !== 'unknown')
    const unknown = entries.filter(entry => entry.kind === 'unknown')
    this.state.dirs.set(node.path, {
      records: node.records,
      rulesIn: node.rulesIn,
      rulesOut: node.rules.key,
      tree: node.tree,
      childDirs: node.childDirs.filter(name => node.entries!.get(name)?.kind === 'dir'),
      noteworthy: node.noteworthy,
      overridden: node.overridden,
      unknown: unknown.length,
      skipped: unknown.filter(entry => partialReasons.has(entry.reason!)).length,
      files: files.length,
      bytes: files.reduce((sum, entry) => sum + entry.size, 0),
    })
    node.entries = undefined
    node.linked = []
  }
}
