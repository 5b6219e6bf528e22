/** From frames to events: numbers become names, and the helper's clock becomes the time of day. */
import { constants } from 'node:os'
import type { Raw } from '../model/raw-path.ts'
import { FIELD, FLAG, FRAME, type Frame, LOST, pathOps } from './frames.ts'
import type {
  ExecEvent,
  Held,
  KeptEvent,
  LostEvent,
  PathEvent,
  TraceEvent,
  UndoneEvent,
  UnmovedEvent,
} from './trace-event.ts'

/** Of several names the first one: SIGABRT is SIGIOT as well. */
const signalNames = new Map(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
)
const NS_PER_MS = 1e6
const lostReason = (flags: number): LostEvent['why'] => {
  if (flags & LOST.watches) return 'watches'
  if (flags & LOST.execution) return 'execution'
  return flags & LOST.architecture ? 'architecture' : 'overflow'
}

/** Each has a NUL behind it, the last one too. */
const listOf = (raw: Raw | undefined): Raw[] => (raw === undefined ? [] : raw.split('\0').slice(0, -1))

const milliseconds = (ns: bigint | undefined): number | undefined =>
  ns === undefined ? undefined : Number(ns) / NS_PER_MS

const fileOf = (frame: Frame): NonNullable<KeptEvent['ofOthers']> => ({
  path: frame.raw(FIELD.path)!,
  mtimeNs: frame.mtime(),
})

export const signalName = (number: number): string => signalNames.get(number) ?? `signal ${number}`

/** Of a look at all processes. */
export function unseenIn(frame: Frame): Pick<Held, 'unseen' | 'unseenSince'> {
  const since = frame.long(FIELD.time)
  const unseenSince = since === undefined ? undefined : since === 0n ? Infinity : Number(since / 1_000_000n)
  return { unseen: frame.number(FIELD.exec) ?? 0, unseenSince }
}

export class EventDecoder {
  /** What is added to the helper's clock. */
  private offsetMs: number

  constructor(offsetMs = 0) {
    this.offsetMs = offsetMs
  }

  /** The event of a frame; undefined for frames that are about the helper itself. */
  decode(frame: Frame): TraceEvent | undefined {
    switch (frame.type) {
      case FRAME.hello:
        this.offsetMs = Number(frame.long(FIELD.time)!) / NS_PER_MS - frame.monotonicMs
        return undefined
      case FRAME.exec:
        return this.exec(frame)
      case FRAME.exit: {
        const signal = frame.number(FIELD.signal)
        return {
          type: 'exit',
          id: frame.number(FIELD.exec)!,
          at: this.time(frame),
          code: frame.number(FIELD.code),
          signal: signal === undefined ? undefined : signalName(signal),
        }
      }
      case FRAME.undone:
        return this.undone(frame)
      case FRAME.late:
        return { type: 'late', id: frame.number(FIELD.exec)! }
      case FRAME.path:
        return this.path(frame)
      case FRAME.kept:
        return {
          type: 'kept',
          name: frame.flags & FLAG.truncated ? undefined : String(frame.number(FIELD.number)!),
          path: frame.raw(FIELD.path)!,
          where: frame.raw(FIELD.to)!,
          ofOthers: frame.flags & FLAG.others ? fileOf(frame) : undefined,
        }
      case FRAME.safe:
        return { type: 'safe', ...fileOf(frame) }
      case FRAME.lost:
        return {
          type: 'lost',
          count: frame.number(FIELD.number)!,
          pid: frame.pid,
          why: lostReason(frame.flags),
        }
      default:
        return undefined
    }
  }

  private time(frame: Frame): number {
    return frame.monotonicMs + this.offsetMs
  }

  private undone(frame: Frame): UndoneEvent | UnmovedEvent {
    const exec = frame.number(FIELD.exec)!
    if (frame.op === 0) return { type: 'undone', id: exec }
    return { type: 'unmoved', op: pathOps[frame.op]!, exec, path: frame.raw(FIELD.path)!, to: frame.raw(FIELD.to)! }
  }

  private exec(frame: Frame): ExecEvent {
    return {
      type: 'exec',
      id: frame.number(FIELD.exec)!,
      at: this.time(frame),
      pid: frame.pid,
      ppid: frame.number(FIELD.ppid)!,
      parent: frame.number(FIELD.parent)!,
      depth: frame.number(FIELD.depth)!,
      replaces: frame.number(FIELD.replaces),
      program: frame.raw(FIELD.program)!,
      argv: listOf(frame.raw(FIELD.argv)),
      detached: (frame.flags & FLAG.detached) !== 0,
      truncated: (frame.flags & FLAG.truncated) !== 0,
      cwd: frame.raw(FIELD.cwd)!,
      setuid: (frame.flags & FLAG.setuid) !== 0,
      held: (frame.flags & FLAG.held) !== 0,
      env: listOf(frame.raw(FIELD.env)),
    }
  }

  private path(frame: Frame): PathEvent {
    return {
      type: 'path',
      at: this.time(frame),
      op: pathOps[frame.op]!,
      pid: frame.pid,
      thread: frame.number(FIELD.thread) ?? frame.pid,
      exec: frame.number(FIELD.exec)!,
      path: frame.raw(FIELD.path),
      to: frame.raw(FIELD.to),
      existed: (frame.flags & FLAG.exists) !== 0,
      directory: (frame.flags & FLAG.directory) !== 0,
      past: (frame.flags & FLAG.past) !== 0,
      absent: (frame.flags & FLAG.absent) !== 0,
      linked: (frame.flags & FLAG.linked) !== 0,
      emptied: (frame.flags & FLAG.emptied) !== 0,
      hold: frame.number(FIELD.number),
      changed: milliseconds(frame.long(FIELD.changed)),
      replaced: milliseconds(frame.long(FIELD.replaced)),
      isUnknown: (frame.flags & FLAG.unknown) !== 0,
    }
  }
}
