/** The log in a spool (native/helper/keep.c): one frame for each file that was about to be destroyed. */
import { readFileSync } from 'node:fs'
import type { Raw } from '../model/raw-path.ts'
import { BadFrame, FIELD, FLAG, FRAME, type Frame, FrameReader, type PathOp, pathOps } from './frames.ts'

const NS_PER_MS = 1_000_000n

export interface KeptFile {
  /** Its name in the spool. */
  name: string
  /** Where it was, absolute, and when. */
  path: Raw
  at: number
  /** What destroyed it, and which execution. */
  op: PathOp
  exec: number
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
  /** Whose it was: others', when nobody in the run has named it before; unsure, when it has changed after the run had written it. */
  whose: 'own' | 'others' | 'unsure'
  /** The directory that it was in. */
  directory: { mode: number; uid: number; gid: number } | undefined
}

/** Oldest first. A record that is not whole, at the end, is one that was never finished. */
export function readKeptLog(file: string): { kept: KeptFile[]; lost: number } {
  const kept: KeptFile[] = []
  let lost = 0
  const reader = new FrameReader(frame => {
    if (frame.type !== FRAME.kept) return
    if (frame.flags & FLAG.truncated) lost++
    else kept.push(toKept(frame))
  })
  try {
    reader.push(readFileSync(file))
  } catch (error) {
    if (!(error instanceof BadFrame) && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return { kept, lost }
}

function directoryOf(frame: Frame): KeptFile['directory'] {
  const attributes = frame.field(FIELD.directory)
  if (!attributes) return undefined
  const [mode, uid, gid] = [0, 4, 8].map(at => attributes.readUInt32LE(at))
  return { mode: mode!, uid: uid!, gid: gid! }
}

const toKept = (frame: Frame): KeptFile => ({
  name: String(frame.number(FIELD.number)!),
  path: frame.raw(FIELD.path)!,
  at: Number(frame.long(FIELD.time)! / NS_PER_MS),
  op: pathOps[frame.op]!,
  exec: frame.number(FIELD.exec)!,
  mode: frame.number(FIELD.mode)!,
  uid: frame.number(FIELD.uid)!,
  gid: frame.number(FIELD.gid)!,
  mtimeNs: frame.mtime(),
  whose: frame.flags & FLAG.others ? 'others' : frame.flags & FLAG.later ? 'unsure' : 'own',
  directory: directoryOf(frame),
})
