/**
 * What a directory holds that the archive does not: excluded files, kept files that were left out, what was too large.
 * Without it an import would take them for absent, and a rollback to it would delete them. Noted in `comment` records
 * of the directory, because every tar passes over those in silence.
 */
import { type UnknownReason, unknownReasons } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import { isSafeName } from '../store/tree-codec.ts'
import type { PaxRecord } from './archive-pax.ts'
import { unsafeArchive } from './archive-unsafe.ts'

const PREFIX = 'savepoint.unknown '

export interface UnknownName {
  name: Raw
  reason: UnknownReason
}

export const unknownRecord = ({ name, reason }: UnknownName): PaxRecord => ['comment', `${PREFIX}${reason} ${name}`]

/** undefined for a comment that is not one of ours. */
export function decodeUnknown(comment: Raw): UnknownName | undefined {
  if (!comment.startsWith(PREFIX)) return undefined
  const space = comment.indexOf(' ', PREFIX.length)
  const reason = unknownReasons.find(known => known === comment.slice(PREFIX.length, space))
  const name = comment.slice(space + 1)
  if (space < 0 || !reason || !isSafeName(name)) throw unsafeArchive('has a malformed note on what was left out')
  return { name, reason }
}
