/**
 * What a directory holds that the archive does not: excluded files, kept files that were left out, what was too large.
 * Without it an import would take them for absent, and a rollback to it would delete them. Noted in `comment` records
 * of the directory, because every tar passes over those in silence.
 */
import { type KnownKind, type UnknownReason, unknownReasons } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import { isSafeName } from '../store/tree-codec.ts'
import type { PaxRecord } from './archive-pax.ts'
import { unsafeArchive } from './archive-unsafe.ts'

const PREFIX = 'savepoint.unknown '

export interface UnknownName {
  name: Raw
  reason: UnknownReason
  found: KnownKind | undefined
  limit: number | undefined
}

const kinds: readonly KnownKind[] = ['file', 'dir', 'link', 'fifo', 'char', 'block']

/** `excluded NAME`, or `excluded:dir NAME` where it is told what is there; `too-large:file:LIMIT NAME`. */
export const unknownRecord = ({ name, reason, found, limit }: UnknownName): PaxRecord => {
  const more = found === undefined ? [] : limit === undefined ? [found] : [found, limit]
  return ['comment', `${PREFIX}${[reason, ...more].join(':')} ${name}`]
}

/** undefined for a comment that is not one of ours. */
export function decodeUnknown(comment: Raw): UnknownName | undefined {
  if (!comment.startsWith(PREFIX)) return undefined
  const space = comment.indexOf(' ', PREFIX.length)
  const [why, kind, size, ...more] = comment.slice(PREFIX.length, space).split(':')
  const reason = unknownReasons.find(known => known === why)
  const found = kinds.find(known => known === kind)
  const limit = size !== undefined && /^\d{1,15}$/.test(size) ? Number(size) : undefined
  const name = comment.slice(space + 1)
  const isWhole =
    more.length === 0 &&
    [found === undefined, limit === undefined].every((is, i) => is === ([kind, size][i] === undefined))
  const isLimited = limit === undefined || reason === 'too-large'
  if (space < 0 || !reason || !isWhole || !isLimited || !isSafeName(name))
    throw unsafeArchive('has a malformed note on what was left out')
  return { name, reason, found, limit }
}
