/** What a run executed and changed, as it is kept. Times are milliseconds since 1970, with fractions. */
import type { Raw } from './raw-path.ts'

/** In the note of an execution: it makes calls that change files and cannot be told, as by a file's handle. */
export const FOREIGN_CALLS = 'changes files by calls that are not told'

/** Of a run whose calls were not all clear. */
export const VAGUE_CALLS =
  'not all calls of the command could be read (of undumpable processes, or with paths of more than 4096 bytes): what those changed is told by when it changed'

export interface Execution {
  run: string
  /** Counts from 1 within the run. */
  id: number
  at: number
  pid: number
  ppid: number
  /** The execution that started it; 0: the run itself, or one that cannot be told. */
  parent: number
  /** 0: the command of the run. */
  depth: number
  /** The execution of the same process that it took the place of. */
  replaces: number | undefined
  program: Raw
  argv: Raw[]
  /** Not all arguments were kept. */
  truncated: boolean
  cwd: Raw
  /** Undefined while it runs, or when its end was not seen. */
  endedAt: number | undefined
  exitCode: number | undefined
  signal: string | undefined
  /** What else there is to know: that nothing brings back what it did, which snapshot was taken before it. */
  note: string | undefined
}

/** What the log of events tells of. */
export const logEventKinds = ['file', 'snapshot', 'operation', 'run', 'command'] as const
export type LogEventKind = (typeof logEventKinds)[number]

export type EventKind = 'created' | 'modified' | 'deleted' | 'renamed' | 'restored'

export interface FileEvent {
  id: number
  /** '' when it was no run's, or nobody knows whose. */
  run: string
  at: number
  kind: EventKind
  /** The call: write, create, delete, rename, exchange, link, attributes, truncate, inherited; changed: watched; restore: ours. */
  op: string
  /** Relative to the target; undefined when it lies outside. */
  path: Raw | undefined
  to: Raw | undefined
  /** 0 when it cannot be told. */
  exec: number
  /** 0 when it cannot be told. */
  pid: number
  /** Before; of what was restored: in the state that it was restored to. */
  existed: boolean
  directory: boolean
  /** Of a file, when it was noted, shortly afterwards; undefined when that is not known or it is not there. */
  size: number | undefined
}

/** What an event meant to the target, whichever call it was. */
export function kindOfEvent({ op, path, to, existed }: Pick<FileEvent, 'op' | 'path' | 'to' | 'existed'>): EventKind {
  if (op === 'restore') return 'restored'
  if (op === 'delete' || (op === 'rename' && to === undefined)) return 'deleted'
  if (op === 'create' || op === 'link' || (op === 'write' && !existed)) return 'created'
  if (op === 'rename' && path === undefined) return 'created'
  return op === 'rename' || op === 'exchange' ? 'renamed' : 'modified'
}

/** Which events led from the snapshot before to this one. */
export interface SnapshotEvents {
  snapshot: string
  /** Its type: what made somebody take it. */
  origin: string
  /** How many files and empty directories differ from its parent; of a first one, how many it has. */
  files: number
  /** Events with a greater id, up to the second, are its own. */
  startEvent: number
  stopEvent: number
  /** Differences that stand in no event, because there were too many. */
  unlisted: number
}

export const hasFailed = ({ exitCode, signal }: Execution): boolean =>
  signal !== undefined || (exitCode !== undefined && exitCode !== 0)
