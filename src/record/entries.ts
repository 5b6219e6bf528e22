/** States of a bundle as entries of a tree, which the rest of Savepoint works with. */
import { blankEntry, type Change, type Entry, type KnownKind } from '../model/entry.ts'
import { nameOf } from '../model/raw-path.ts'
import { aclGroup, withAclGroup, withGroup, withoutAcl } from './acl-group.ts'
import type { Bundle, BundleFile } from './bundle.ts'
import { rawOf } from './bundle-paths.ts'
import type { State, StateType } from './manifest.ts'
import { timeFromText } from './time-text.ts'

const kinds: Partial<Record<StateType, KnownKind>> = {
  file: 'file',
  directory: 'dir',
  symlink: 'link',
  fifo: 'fifo',
  'char-device': 'char',
  'block-device': 'block',
}

/**
 * Without its content and without an access list, so that its mode gives nobody more than that did. undefined when nothing is there, or
 * something that no tree can hold (a socket).
 */
export function toEntry(file: BundleFile, state: State): Entry | undefined {
  const kind = state.type && kinds[state.type]
  if (!state.exists || kind === undefined) return undefined
  const entry = blankEntry(nameOf(file.raw), kind)
  entry.mode = withGroup(state.mode ?? 0, state.group_mode)
  entry.uid = state.uid ?? 0
  entry.gid = state.gid ?? 0
  if (kind !== 'dir' && state.mtime !== undefined) entry.mtimeNs = timeFromText(state.mtime)
  if (kind === 'file') entry.size = state.size ?? 0
  if (kind === 'link') {
    entry.target = rawOf(state.target ?? '', state.target_bytes)
    entry.size = entry.target.length
  }
  if (state.device) [entry.rdevMajor, entry.rdevMinor] = state.device
  return entry
}

/**
 * A bundle says nothing of them: what is there keeps its own. With an access list among them, its group has the rights that it had by one.
 * A list that there was none of, and that the command made (or moved there, with another file), would let others at what comes back: it goes.
 */
export function keepXattrs(entry: Entry, { xattrs }: Entry, state: State, other: State): void {
  if (!xattrs) return
  const { mode = 0, group_mode } = state
  entry.xattrs = xattrs
  const group = aclGroup(mode, xattrs)
  if (group === undefined) return
  if (hadNoList(state, other)) {
    entry.xattrs = withoutAcl(xattrs)
    return
  }
  entry.mode = mode
  if (group_mode !== undefined && group_mode !== group) entry.xattrs = withAclGroup(mode, xattrs, group_mode)
}

/** Bundles of older versions tell of none, neither before nor after. */
const hadNoList = ({ group_mode }: State, other: State): boolean =>
  group_mode === undefined && other.group_mode !== undefined

/** What its group may by an access list, or without one. */
const rightsOf = ({ mode = 0, group_mode }: State): number => withGroup(mode, group_mode)

type States = Pick<BundleFile, 'before' | 'after'>

/** Whether something is another before and after: by its content, where that is known. */
export function isChanged({ before, after }: States): boolean {
  if (before.exists !== after.exists) return true
  if (!before.exists) return false
  if (before.type !== after.type || before.mode !== after.mode) return true
  if (rightsOf(before) !== rightsOf(after) || hadNoList(before, after)) return true
  if (before.uid !== after.uid || before.gid !== after.gid) return true
  if (before.target !== after.target || before.target_bytes !== after.target_bytes) return true
  if (before.type === 'directory') return false
  if (before.sha256 !== undefined && after.sha256 !== undefined)
    return before.sha256 !== after.sha256 || before.mtime !== after.mtime
  return before.size !== after.size || before.mtime !== after.mtime
}

/** As the command saw it, and left it: with the rights of the group itself only where nothing else would tell that they changed. */
const shownMode = (state: State, other: State): number =>
  state.mode === other.mode && rightsOf(state) !== rightsOf(other) ? rightsOf(state) : (state.mode ?? 0)

export type BundleChange = Change & { file: BundleFile }

/** What the command changed, without directories whose content alone did. */
export function changesOf(bundle: Bundle): BundleChange[] {
  return bundle.files.filter(isChanged).map(file => {
    const before = toEntry(file, file.before)
    const after = toEntry(file, file.after)
    if (before) before.mode = shownMode(file.before, file.after)
    if (after) after.mode = shownMode(file.after, file.before)
    if (before?.kind === 'file') before.content = file.before.sha256 ?? ''
    if (after?.kind === 'file') after.content = file.after.sha256 ?? ''
    const kind = kindOf(file)
    return { kind, path: file.raw.slice(1), file, ...(before ? { before } : {}), ...(after ? { after } : {}) }
  })
}

export function kindOf({ before, after }: States): Change['kind'] {
  if (!before.exists) return 'added'
  if (!after.exists) return 'deleted'
  if (before.type !== after.type) return 'type-changed'
  const isSame = before.type === 'file' ? before.sha256 === after.sha256 : before.target === after.target
  return isSame ? 'metadata' : 'modified'
}
