/** Which hard links a restore must make: one member of each group is a file, the others link to it. */
import type { Entry, Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { sameEntry } from '../../store/tree-diff.ts'
import { allEntries, entryAt, withAllBelow } from '../../store/tree-lookup.ts'
import type { PlanAction } from './restore-plan.ts'

/** Paths that become links, each with the path (final place) it links to. Empty when no hard links are involved. */
export function planLinks(store: Store, actions: readonly PlanAction[], live: Id, wanted: Id): Map<Raw, Raw> {
  const written = new Map<GroupKey, Raw[]>()
  for (const action of actions) {
    if (action.action === 'create' || action.action === 'replace') collect(store, action.path, action.entry, written)
  }
  const links = new Map<Raw, Raw>()
  if (written.size === 0) return links
  const changed = new Set(actions.flatMap(action => (action.action === 'metadata' ? [action.path] : [])))
  const kept = keptMembers(store, written, live, wanted, changed)
  for (const [group, members] of written) {
    const source = kept.get(group) ?? members[0]!
    for (const path of members) if (path !== source) links.set(path, source)
  }
  return links
}

/** Content too: a mark that outlived its group must never give one file the content of another. */
type GroupKey = string
const groupKey = (entry: Entry): GroupKey => `${entry.linkGroup} ${entry.content}`

function collect(store: Store, path: Raw, entry: Entry, groups: Map<GroupKey, Raw[]>): void {
  for (const found of withAllBelow(store, { path, entry })) {
    if (found.entry.kind !== 'file' || found.entry.linkGroup === 0n) continue
    const members = groups.get(groupKey(found.entry))
    if (members) members.push(found.path)
    else groups.set(groupKey(found.entry), [found.path])
  }
}

/** Members of the groups that stay and can be linked to. Those in `changed` get their metadata after the linking. */
function keptMembers(
  store: Store,
  written: Map<GroupKey, Raw[]>,
  live: Id,
  wanted: Id,
  changed: ReadonlySet<Raw>,
): Map<GroupKey, Raw> {
  const kept = new Map<GroupKey, Raw>()
  for (const { path, entry } of allEntries(store, wanted)) {
    if (entry.kind !== 'file' || entry.linkGroup === 0n) continue
    const key = groupKey(entry)
    if (kept.has(key) || !written.has(key)) continue
    const now = entryAt(store, live, path)
    if (now && (sameEntry(now, entry) || changed.has(path))) kept.set(key, path)
  }
  return kept
}
