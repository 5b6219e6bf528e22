/** Whose a restored file is: nobody but root can give files away, but to groups that they are in. */
import type { Entry } from '../model/entry.ts'
import { givenMode } from '../targets/dir/given-mode.ts'

const SET_IDS = 0o6000

/** What has its owner already (`live`) needs nobody to give it. Returns whether more is lost than the owner: its group, or a set-id bit. */
export function ownEntry(entry: Entry, live: Entry | undefined): boolean {
  const user = process.geteuid!()
  if (user === 0) return false
  const hasOwner = entry.uid === user || entry.uid === live?.uid
  const hasGroup = entry.gid === live?.gid || groups().has(entry.gid)
  if (hasOwner && hasGroup) return false
  const { mode } = entry
  if (!hasOwner) entry.uid = user
  if (!hasGroup) entry.gid = process.getegid!()
  entry.mode = givenMode(entry, hasGroup)
  return !hasGroup || (mode & SET_IDS) !== (entry.mode & SET_IDS)
}

let known: ReadonlySet<number> | undefined
const groups = (): ReadonlySet<number> => {
  known ??= new Set(process.getgroups!())
  return known
}
