/** Which hard links a restore must make: one member of each group is a file, the others link to it. */
import type { Entry, Id } from '../../model/entry.ts'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { sameEntry } from '../../store/tree-diff.ts'
import { allEntries, entryAt } from '../../store/tree-lookup.ts'
import type { PlanAction } from './restore-plan.ts'

/** Paths that become links, each with the path (final place) it links to. Empty when no hard links are involved. */
export function planLinks(store: Store, actions: readonly PlanAction[], live: Id, wanted: Id): Map<Raw, Raw> {
  const written = new Map<bigint, Raw[]>()
  for (const action of actions) {
    if (action.action === 'create' || action.action === 'replace') collect(store, action.path, action.entry, written)
  }
  const links = new Map<Raw, Raw>()
  if (written.size === 0) return links
  const kept = keptMembers(store, written, live, wanted)
  for (const [group, members] of written) {
    const source = kept.get(group) ?? members[0]!
    for (const path of members) if (path !== source) links.set(path, source)
  }
  return links
}

function collect(store: Store, path: Raw, entry: Entry, groups: Map<bigint, Raw[]>): void {
  if (entry.kind === 'dir') for (const child of store.tree(entry.content)) collect(store, joinRaw(path, child.name), child, groups)
  else if (entry.kind === 'file' && entry.linkGroup !== 0n) {
    const members = groups.get(entry.linkGroup)
    if (members) members.push(path)
    else groups.set(entry.linkGroup, [path])
  }
}

/** Members of the groups that stay as they are and can be linked to. */
function keptMembers(store: Store, written: Map<bigint, Raw[]>, live: Id, wanted: Id): Map<bigint, Raw> {
  const kept = new Map<bigint, Raw>()
  for (const { path, entry } of allEntries(store, wanted)) {
    if (entry.kind !== 'file' || kept.has(entry.linkGroup) || !written.has(entry.linkGroup)) continue
    const now = entryAt(store, live, path)
    if (now && sameEntry(now, entry)) kept.set(entry.linkGroup, path)
  }
  return kept
}
