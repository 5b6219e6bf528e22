import type { Entry, EntryKind } from '../model/entry.ts'
import { type Raw, rawToBytes } from '../model/raw-path.ts'

/** One change with the bytes to compare. */
export interface ContentChange {
  path: Raw
  /** Where it was, when it was renamed. */
  from?: Raw
  before?: Entry
  after?: Entry
  /** Of a file: undefined when it is too large or not available. Not needed for links, nor when both ids are equal. */
  beforeContent?: Buffer
  afterContent?: Buffer
}

/** One state of a path that a patch can express: a regular file or a symbolic link. */
export interface Side {
  kind: 'file' | 'link'
  /** As in st_mode: 0o100644, 0o100755, 0o120000… */
  mode: number
  sizeBytes: number
  /** It is not captured, and larger than that. */
  isLarger?: boolean
  content: Buffer | undefined
}

export const isPatchable = (kind: EntryKind) => kind === 'file' || kind === 'link'

/** The patchable state, or undefined when there is none: absent, a directory, a device… */
export function sideOf(entry: Entry | undefined, content: Buffer | undefined): Side | undefined {
  if (entry?.kind === 'link') {
    const target = rawToBytes(entry.target)
    return { kind: 'link', mode: 0o120000, sizeBytes: target.length, content: target }
  }
  if (entry?.kind !== 'file') return undefined
  const sizeBytes = content?.length ?? entry.size
  return { kind: 'file', mode: 0o100000 | entry.mode, sizeBytes, isLarger: entry.reason === 'too-large', content }
}

/** Whether both entries are known to hold the same bytes. */
export function sameContent(change: ContentChange): boolean {
  const { before, after, beforeContent, afterContent } = change
  if (before?.kind !== after?.kind || !before || !after) return false
  if (before.kind === 'link') return before.target === after.target
  if (before.content !== '' && after.content !== '') return before.content === after.content
  return beforeContent !== undefined && afterContent !== undefined && beforeContent.equals(afterContent)
}

const binaryProbeBytes = 8000

/** As git decides it: a NUL among the first bytes. */
export const isBinary = (content: Buffer) => content.subarray(0, binaryProbeBytes).includes(0)
