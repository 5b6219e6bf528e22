/** What a command is traced with, and who is told. */
import type { Raw } from '../model/raw-path.ts'
import type { Inherited } from './inherited.ts'
import type { HelperDriver } from './probe-helper.ts'
import type { TraceEvent } from './trace-event.ts'

export interface RecordedOptions {
  /** Also what it only looks at. */
  looks: boolean
  /** Absolute; with all below them. */
  ignored: Raw[]
  /** The command has ended, and so many processes of it go on, and are waited for until `abandon` is called. */
  onWaiting(count: number, abandon: () => void): void
}

export interface TracedOptions {
  driver: HelperDriver | 'eslogger'
  command: string[]
  cwd: string | undefined
  env: NodeJS.ProcessEnv
  inherited: Inherited
  allowIoUring: boolean
  /** Directories that the command cannot change, unless it is Savepoint; only where changes are seen. */
  protect: string[]
  /** Where changes are watched, because the driver does not see them; what is ignored is not looked into. */
  watch: { path: Raw; ignored: Raw[] } | undefined
  /** Programs whose executions wait to be released, for at most `maxMs`; their names alone, `*` for all. */
  hold: { names: string[]; maxMs: number } | undefined
  /** A directory for files that are about to be destroyed; its file `target` says below which path. */
  spool: string | undefined
  /** Changes below that path, and the command itself, wait to be released until `begun` is called. */
  holdsChanges?: boolean
  /** Nothing is told; what the command looks at or changes goes into the log of the spool instead (record-log.ts). */
  record?: RecordedOptions
  onEvent(event: TraceEvent): void
  /** Called after each piece of the stream, when its events are through. */
  onBatch(): void
  onHelperDied(): void
  /** The command has stopped. Not called where SIGCHLD says so. */
  onStop(): void
  /** The command has ended and left processes. Whether what these do is to be told, too, until `leave` is called. */
  onLeft?(): boolean
}
