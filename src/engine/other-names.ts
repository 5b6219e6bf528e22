/**
 * Hard links: whoever writes a file by one of its names changes it under all of them, but the trace has only the one that
 * was used. So all names of a file are judged together.
 */
import type { Change } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'

/** Also true for what was the same file as something that `isTouched`, before or after these changes. */
export function withOtherNames(isTouched: (path: Raw) => boolean, changes: readonly Change[]): (path: Raw) => boolean {
  const groupsOf = new Map<Raw, string[]>()
  const namesOf = new Map<string, Raw[]>()
  for (const { path, before, after } of changes) {
    // The same number in two trees need not be the same file.
    const groups = [before?.linkGroup && `before ${before.linkGroup}`, after?.linkGroup && `after ${after.linkGroup}`]
    for (const group of groups) {
      if (!group) continue
      listIn(groupsOf, path).push(group)
      listIn(namesOf, group).push(path)
    }
  }
  if (groupsOf.size === 0) return isTouched
  const touched = new Set(Array.from(groupsOf.keys()).filter(isTouched))
  // A set is walked to its end although it grows meanwhile.
  for (const path of touched)
    for (const group of groupsOf.get(path)!) {
      for (const name of namesOf.get(group)!) touched.add(name)
      namesOf.set(group, [])
    }
  return path => touched.has(path) || isTouched(path)
}

function listIn<K, V>(map: Map<K, V[]>, key: K): V[] {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}
