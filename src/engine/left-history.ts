/**
 * What a state has captured, is something else by now, and is not captured any more: a kept `.env` that became a directory,
 * a file that grew beyond the limit, a directory that a subvolume has taken the place of. Trees only say "unknown" there, of what kind it is, and above which limit; the live file tells more.
 */
import { blankEntry, type Change, type Entry, type Id, type UnknownReason } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { Stat } from '../native/addon.ts'
import { EMPTY_TREE } from '../store/tree-codec.ts'
import { differingEntries, toOtherKind } from '../store/tree-diff.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { kindOfType } from '../targets/dir/dir-node.ts'
import { S_IFMT } from '../targets/dir/walk-record.ts'
import type { Context } from './context.ts'
import { statLive } from './resolve-path.ts'

/** Left out for what they are now; other reasons are reported as such, or say nothing of the content. */
const telling: ReadonlySet<UnknownReason | undefined> = new Set(['excluded', 'too-large', 'socket', 'mount'])

/** Root trees; `now` is of the live state. In the order of paths. */
export function* leftHistory(ctx: Context, before: Id, now: Id, scope?: readonly Raw[]): Generator<Change> {
  const [old, live] = [rootTreeOf(ctx.store, before), rootTreeOf(ctx.store, now)]
  for (const { path, before: was, after } of differingEntries(ctx.store, old, live, scope)) {
    if (!was || was.kind === 'unknown' || after?.kind !== 'unknown' || !telling.has(after.reason)) continue
    const change = after.reason === 'mount' ? toOtherKind(path, was, after) : changeOf(path, was, statLive(ctx, path))
    if (change) yield change
  }
}

function changeOf(path: Raw, before: Entry, stat: Stat | undefined): Change | undefined {
  const kind = stat && kindOfType.get(stat.mode & S_IFMT)
  // A socket is nothing that a snapshot can hold.
  if (!stat || !kind) return { kind: 'deleted', path, before }
  const after: Entry = {
    ...blankEntry(before.name, kind),
    mode: stat.mode & ~S_IFMT,
    uid: stat.uid,
    gid: stat.gid,
    ...(kind === 'dir' ? { content: EMPTY_TREE } : { size: stat.size, mtimeNs: stat.mtimeNs }),
  }
  if (kind !== before.kind) return { kind: 'type-changed', path, before, after }
  // A rule that was added leaves the file as it is.
  const isSame = kind !== 'file' || (stat.size === before.size && stat.mtimeNs === before.mtimeNs)
  return isSame ? undefined : { kind: 'modified', path, before, after }
}

/** How many are named. */
const NAMED = 5

/** For a snapshot that is about to be taken: what it will not have, although the one before has it. */
export function sayWhatLeft(ctx: Context, before: Snapshot, now: Id): void {
  const left = [...leftHistory(ctx, before.root, now)].map(({ path }) => showPath(path))
  if (left.length === 0) return
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : ''
  const [are, have] = left.length === 1 ? ['is', 'it'] : ['are', 'them']
  ctx.notice(
    `${left.slice(0, NAMED).join(', ')}${more} changed and ${are} not captured any more; ${before.id} has ${have} as before`,
  )
}
