/** What a tracer tells about a run. Times are milliseconds since 1970, with fractions. */
import type { Raw } from '../model/raw-path.ts'
import type { Execution } from '../model/trace.ts'
import type { PathOp } from './frames.ts'

/** A program that was started. What is kept of it is told by the same names. */
export interface ExecEvent
  extends Pick<
    Execution,
    'id' | 'at' | 'pid' | 'ppid' | 'parent' | 'depth' | 'replaces' | 'program' | 'argv' | 'truncated' | 'cwd'
  > {
  type: 'exec'
  /** Its parents are gone, and who they were cannot be told. */
  detached: boolean
  /** It would have had more rights without us. */
  setuid: boolean
  /** It has not begun, and waits to be released. */
  held: boolean
  /** Of git when it is held: `NAME=value` of the variables that say where its directories are. */
  env: Raw[]
}

/** `code` and `signal` are undefined when nobody could tell. */
export interface ExitEvent {
  type: 'exit'
  id: number
  at: number
  code: number | undefined
  signal: string | undefined
}

/** An execution that was told, and that the system then refused. */
export interface UndoneEvent {
  type: 'undone'
  id: number
}

/** A rename that was told, and that the system then refused. */
export interface UnmovedEvent {
  /** Which directory is the target then (InTree). */
  present?: number
  type: 'unmoved'
  op: PathOp
  exec: number
  path: Raw
  to: Raw
}

/** An execution that was held for as long as is allowed, and goes on. */
export interface LateEvent {
  type: 'late'
  id: number
}

/**
 * A call that changes a file, told before it is carried out: it may still fail. Where the target is watched instead (`changed`,
 * and `create`, `delete`, `rename`, `attributes` of exec 0), what has happened, told afterwards, by whomever; a directory that
 * came stands for all in it.
 */
export interface PathEvent {
  type: 'path'
  at: number
  op: PathOp
  pid: number
  /** Of the process. */
  thread: number
  /** Which execution did it; 0 when that cannot be told. */
  exec: number
  /** Absolute; undefined when it could not be found out. */
  path: Raw | undefined
  to: Raw | undefined
  existed: boolean
  /** It has happened, as watching tells; otherwise it is about to. */
  past: boolean
  /** Nothing was at `path`: all but what makes something there will fail. */
  absent: boolean
  directory: boolean
  /** The file has other names. */
  linked: boolean
  /** To be renamed, and the run has emptied that file before: all that is in it is its own work. */
  emptied: boolean
  /** It waits to be released, by this number. */
  hold: number | undefined
  /** When the content of the file at `path`, and of one at `to`, last changed, if that was since the command began. */
  changed: number | undefined
  replaced: number | undefined
  /** One of the paths could not be found out. */
  isUnknown: boolean
  tree?: InTree | undefined
}

/** Of the directories that were the target one after the other, which one paths are in (src/engine/target-place.ts). */
export interface InTree {
  index: number
  /** It is the target now. */
  isPresent: boolean
  /** When it took the place of another one. */
  came: number | undefined
}

/** A file that a process can write without another call that would be told. */
export interface HeldFile {
  path: Raw
  /** Through memory: no timestamp tells that it was written again. */
  mapped: boolean
  /** When it has several names. */
  inode: bigint | undefined
}

/** What processes hold, looked for after everything before it was told. */
export interface Held {
  files: HeldFile[]
  /** Processes that could not be looked at, and when the last of them was started; Infinity where nobody tells. */
  unseen: number
  unseenSince: number | undefined
}

export interface Look extends Held {
  /** To be called when what was told before the look is in a snapshot; or all that had happened. */
  captured(isAll: boolean): void
}

/** A file that was about to be destroyed and is kept in the spool, where its own log says more (kept-log.ts). */
export interface KeptEvent {
  type: 'kept'
  /** Its name there; undefined: it could not be kept. */
  name: string | undefined
  path: Raw
  /** When nobody in the run has named it before. */
  ofOthers: { path: Raw; mtimeNs: bigint } | undefined
  /** Where it was, if the target was moved. */
  where: Raw
  tree?: InTree | undefined
}

/** A file that somebody else has written is about to be destroyed, and is in a snapshot as it is. */
export interface SafeEvent {
  type: 'safe'
  path: Raw
  mtimeNs: bigint
}

/** Something was not seen. */
export interface LostEvent {
  type: 'lost'
  count: number
  /** Of whose calls; 0 when that is not known. */
  pid: number
  /** watches: not all directories can be watched. execution: what was executed; what that changes is told. */
  why: 'overflow' | 'architecture' | 'watches' | 'execution'
}

export type TraceEvent =
  | ExecEvent
  | ExitEvent
  | UndoneEvent
  | UnmovedEvent
  | LateEvent
  | PathEvent
  | KeptEvent
  | SafeEvent
  | LostEvent
