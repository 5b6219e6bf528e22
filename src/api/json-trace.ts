/** The JSON shapes of what is traced. The same rules as in json.ts; arguments are text with bytes escaped as in paths. */
import type * as results from '../index.ts'
import type { Raw } from '../model/raw-path.ts'
import { showPath } from '../model/raw-path.ts'
import type { Execution, FileEvent } from '../model/trace.ts'
import { orNull, runJson, snapshotJson, time } from './json.ts'

const shown = (raw: Raw | undefined): string | null => (raw === undefined ? null : showPath(raw))

export function executionJson(execution: Execution) {
  const { at, endedAt } = execution
  return {
    id: execution.id,
    run: execution.run,
    time: time(at),
    pid: execution.pid,
    ppid: execution.ppid,
    parent: execution.parent === 0 ? null : execution.parent,
    depth: execution.depth,
    replaces: orNull(execution.replaces),
    command: showPath(execution.program),
    argv: execution.argv.map(showPath),
    truncated: execution.truncated,
    cwd: showPath(execution.cwd),
    ended_at: time(endedAt),
    exit_code: orNull(execution.exitCode),
    signal: orNull(execution.signal),
    note: orNull(execution.note),
    duration_ms: endedAt === undefined ? null : Math.round((endedAt - at) * 1000) / 1000,
  }
}

export const traceJson = ({ run, executions }: results.TraceResult) => ({
  run: runJson(run),
  commands: executions.map(executionJson),
})

export const fileEventJson = (event: FileEvent) => ({
  id: event.id,
  run: event.run === '' ? null : event.run,
  time: time(event.at),
  kind: event.kind,
  op: event.op,
  path: shown(event.path),
  to: shown(event.to),
  size: orNull(event.size),
  pid: event.pid === 0 ? null : event.pid,
  exec: event.exec === 0 ? null : event.exec,
  existed: event.existed,
  directory: event.directory,
})

export const whyJson = ({ path, causes }: results.WhyResult) => ({
  path: showPath(path),
  causes: causes.map(({ event, name, outcome, execution, likely, before, after }) => ({
    event: fileEventJson(event),
    name: showPath(name),
    outcome,
    likely: likely.map(executionJson),
    command: execution ? executionJson(execution) : null,
    before: before ? snapshotJson(before).id : null,
    after: after ? snapshotJson(after).id : null,
  })),
})

export const processJson = (process: results.RunProcess) => ({
  pid: process.pid,
  start: process.start,
  started_at: time(process.startedAt),
  ppid: process.parent,
  run: process.run,
  state: process.state,
  argv: process.argv.map(showPath),
})
