/**
 * What the log of a spool tells of the state before a run (native/helper/before.h): each entry as it was when the run was
 * about to change it, and each rename, in the order of the calls. A call may have failed, or never been let go.
 */
import { readFileSync } from 'node:fs'
import type { Raw } from '../model/raw-path.ts'
import { BadFrame, FIELD, FLAG, FRAME, type Frame, FrameReader, pathOps } from './frames.ts'

export interface EntryBefore {
  /** Absolute. */
  path: Raw
  /** undefined: nothing was there. */
  was:
    | {
        /** With its type. */
        mode: number
        uid: number
        gid: number
        mtimeNs: bigint
        /** Of a symbolic link. */
        target: Raw
        /** The name of a file's copy in the spool; undefined when there is none. */
        copy: string | undefined
        /** Not of directories. Another file may have had the same number later. */
        ino: bigint | undefined
      }
    | undefined
}

export interface MoveBefore {
  from: Raw
  to: Raw
  isExchange: boolean
}

export type BeforeChange = EntryBefore | MoveBefore

export const pathOf = (change: BeforeChange): Raw => ('was' in change ? change.path : change.from)
export const copyOf = (change: BeforeChange): string | undefined => ('was' in change ? change.was?.copy : undefined)

/** Oldest first; undefined when the log does not tell that state (any more). */
export function readBeforeLog(file: string): BeforeChange[] | undefined {
  const changes: BeforeChange[] = []
  let isOver = false
  const reader = new FrameReader(frame => {
    if (frame.type === FRAME.before) changes.push(entryOf(frame))
    if (frame.type === FRAME.moved) changes.push(moveOf(frame))
    if (frame.type === FRAME.captured) isOver = true
  })
  try {
    reader.push(readFileSync(file))
  } catch (error) {
    if (!(error instanceof BadFrame) && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return isOver ? undefined : changes
}

function entryOf(frame: Frame): EntryBefore {
  const path = frame.raw(FIELD.path)!
  if (frame.flags & FLAG.absent) return { path, was: undefined }
  const copy = frame.number(FIELD.number)
  return {
    path,
    was: {
      mode: frame.number(FIELD.mode)!,
      uid: frame.number(FIELD.uid)!,
      gid: frame.number(FIELD.gid)!,
      mtimeNs: frame.mtime(),
      target: frame.raw(FIELD.to) ?? '',
      copy: copy === undefined ? undefined : String(copy),
      ino: frame.long(FIELD.inode),
    },
  }
}

const moveOf = (frame: Frame): MoveBefore => ({
  from: frame.raw(FIELD.path)!,
  to: frame.raw(FIELD.to)!,
  isExchange: pathOps[frame.op] === 'exchange',
})
