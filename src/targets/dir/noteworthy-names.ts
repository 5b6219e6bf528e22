/** Names in a listing that decide how the directory is treated, as bits, so that the cache can keep them. */
import { RECORD } from '../../native/addon.ts'
import * as record from './walk-record.ts'

export const NOTEWORTHY = { gitignore: 1, savepointignore: 2, git: 4, head: 8, objects: 16, refs: 32 } as const
const GIT_DIR = NOTEWORTHY.head | NOTEWORTHY.objects | NOTEWORTHY.refs

/** The directory of a repository itself: `.git`, or a bare one. */
export const isGitDir = (noteworthy: number): boolean => (noteworthy & GIT_DIR) === GIT_DIR

const bits = new Map<string, number>([
  ['.gitignore', NOTEWORTHY.gitignore],
  ['.savepointignore', NOTEWORTHY.savepointignore],
  ['.git', NOTEWORTHY.git],
  ['HEAD', NOTEWORTHY.head],
  ['objects', NOTEWORTHY.objects],
  ['refs', NOTEWORTHY.refs],
])
/** First bytes and lengths of those names: this runs for every entry, and most are told by them alone. */
const firsts = new Set([...bits.keys()].map(name => name.charCodeAt(0)))
const lengths = new Set([...bits.keys()].map(name => name.length))

export function noteworthyNames(records: Buffer): number {
  let found = 0
  record.forEachRecord(records, at => {
    if (!firsts.has(records[at + RECORD.name]!) || !lengths.has(record.recordLength(records, at) - RECORD.name)) return
    const bit = bits.get(record.recordName(records, at)) ?? 0
    // git does not follow an ignore file that is a link either.
    const isRules = (bit & (NOTEWORTHY.gitignore | NOTEWORTHY.savepointignore)) !== 0
    if (!isRules || record.recordType(records, at) === record.S_IFREG) found |= bit
  })
  return found
}
