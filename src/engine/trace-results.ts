/** What the verbs about traces and events answer. Plain data with raw paths; faces render it. */
import type { Raw } from '../model/raw-path.ts'
import type { Running } from '../model/running.ts'
import type { Operation, OperationKind, Run, Snapshot, SnapshotType } from '../model/snapshot.ts'
import type { EventKind, Execution, FileEvent, SnapshotEvents } from '../model/trace.ts'

export interface TraceSummary {
  /** none: changes were watched, commands are not known. */
  tracer: string
  commands: number
  failed: number
  /** Paths outside of the target that were changed, made and left there, or deleted; 0 where changes are not told. */
  outside: number
  /** Of these, deleted or moved away. */
  removed: number
  /** Events that were not seen. */
  lost: number
  /** Taken while it went on. */
  snapshots: number
  /** Processes of the run went on when its command ended. */
  survivors: boolean
  /** Which of them still do; not all of very many. */
  running: Running[]
}

export interface TraceResult {
  run: Run
  /** What has no end then has outlived it, or nobody was left to see its end. */
  isOver: boolean
  executions: Execution[]
}

/** What is to be known of a run to show an execution of it. */
export interface FollowedRun {
  startedAt: number
  isOver: boolean
}

/** Something that happened in the timeline. What it was about is as it is now, and the rest as it was. */
export type LogEvent = {
  /** Where it stands: what comes after it, or before it, can be asked for with this. */
  cursor: string
  at: number
  /** The run that it belongs to; of an operation, that is about it, or of which a process asked for it. */
  run: string | undefined
} & (
  | { kind: 'file'; action: EventKind; event: FileEvent; execution: Execution | undefined }
  | {
      kind: 'snapshot'
      /** removed: by the rules of retention, without being asked. What somebody deletes is an operation. */
      action: 'taken' | 'removed'
      id: string
      /** The rule that removed it. */
      rule: string | undefined
      /** Undefined when it is gone for good; then its type is all that is known. */
      snapshot: Snapshot | undefined
      type: SnapshotType | undefined
      tags: string[]
      isHead: boolean
      /** Which events led to it, if that is known. */
      events: SnapshotEvents | undefined
    }
  | { kind: 'operation'; action: OperationKind; operation: Operation }
  /** interrupted: its supervisor was killed, and somebody else has noticed. lost: so many events of it were not seen. */
  | { kind: 'run'; action: 'started' | 'ended' | 'interrupted' | 'lost'; of: Run; lost: number | undefined }
  | { kind: 'command'; action: 'started' | 'ended'; execution: Execution }
)

export interface EventsResult {
  events: LogEvent[]
  /** Goes on where this page ends; undefined: nothing is left. */
  next: string | undefined
}

export interface WhyCause {
  event: FileEvent
  /** What the path was called then: it may have been renamed, or be another name of the same file. */
  name: Raw
  /** unchanged: the snapshots around it show that it had no effect; it failed, mostly. unknown: they do not show it. */
  outcome: 'changed' | 'unchanged' | 'unknown'
  /** Which command did it; undefined when that cannot be told. */
  execution: Execution | undefined
  /** Then: which commands ran at that moment, the likeliest first. */
  likely: Execution[]
  /** The snapshots of the timeline around it. */
  before: Snapshot | undefined
  after: Snapshot | undefined
}

export interface WhyResult {
  path: Raw
  causes: WhyCause[]
}

/** Of the traces: command lines of which words were hidden, events of files that were removed. */
export interface PurgedTraces {
  commands: number
  events: number
}

/** What `subscribe` tells: what is in the log of events as well, and what is only of this moment. */
export type TimelineEvent =
  | LogEvent
  /** What happens from now on is told. `cursor`: after which event. */
  | { kind: 'following'; cursor: string }
  /** Of the live files; undefined: there is none any more. */
  | { kind: 'head'; head: string | undefined }

/** A process of a run. */
export interface RunProcess {
  pid: number
  /** When it began, in ticks of the kernel: with the pid, it is this process and no later one. */
  start: number
  startedAt: number
  parent: number
  run: string
  /** As the kernel names it: R, S, D, T, Z. */
  state: string
  /** Secrets in it are hidden as in traces. */
  argv: Raw[]
}
