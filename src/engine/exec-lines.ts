/** The lines of exec.jsonl. Bytes that are not UTF-8 are lone surrogates, which JSON writes as escapes. */
import { type Raw, rawToText } from '../model/raw-path.ts'
import type { Execution } from '../model/trace.ts'
import type { ExecEvent } from '../tracers/trace-event.ts'

const jsonLine = (value: object): string => `${JSON.stringify(value)}\n`
const timeOf = (at: number): string => new Date(at).toISOString()

/** `argv`: with secrets hidden. */
export const execLine = (run: string, event: ExecEvent, argv: readonly Raw[]): string =>
  jsonLine({
    type: event.type,
    id: event.id,
    time: timeOf(event.at),
    run,
    pid: event.pid,
    ppid: event.ppid,
    parent: event.parent,
    depth: event.depth,
    replaces: event.replaces ?? null,
    command: rawToText(event.program),
    argv: argv.map(rawToText),
    truncated: event.truncated,
    detached: event.detached,
    cwd: rawToText(event.cwd),
  })

/** It has ended. */
export const exitLine = ({ run, id, pid, at, endedAt, exitCode, signal }: Execution): string =>
  jsonLine({
    type: 'exit',
    id,
    time: timeOf(endedAt!),
    run,
    pid,
    exit_code: exitCode ?? null,
    signal: signal ?? null,
    duration_ms: Math.round((endedAt! - at) * 1000) / 1000,
  })

/** It did not happen after all. */
export const undoneLine = (run: string, id: number): string => jsonLine({ type: 'undone', id, run })
