/** The JSON shapes of the log of events, by the rules of json.ts. */
import type * as results from '../index.ts'
import { operationJson, orNull, snapshotJson, time } from './json.ts'
import { executionJson, fileEventJson } from './json-trace.ts'

export function eventJson(event: results.LogEvent) {
  const { cursor, at } = event
  const common = { cursor, time: time(at), run: orNull(event.run) }
  switch (event.kind) {
    case 'file': {
      const command = event.execution ? executionJson(event.execution) : null
      return { ...fileEventJson(event.event), kind: event.kind, action: event.action, ...common, command }
    }
    case 'snapshot': {
      const { kind, action, id, type, rule, snapshot, events } = event
      return {
        kind,
        action,
        ...common,
        id,
        type: orNull(type),
        command: orNull(snapshot?.command),
        rule: orNull(rule),
        snapshot: snapshot ? snapshotJson(snapshot, { tags: event.tags, head: event.isHead }) : null,
        changes: events
          ? {
              files: events.files,
              start_event: events.startEvent,
              stop_event: events.stopEvent,
              unlisted: events.unlisted,
            }
          : null,
      }
    }
    case 'operation':
      return { kind: event.kind, action: event.action, ...common, operation: operationJson(event.operation) }
    case 'run': {
      const { command, cwd, pid, exitCode, signal } = event.of
      return {
        kind: event.kind,
        action: event.action,
        ...common,
        run: event.of.id,
        command,
        cwd,
        pid: orNull(pid),
        exit_code: orNull(exitCode),
        signal: orNull(signal),
        lost: orNull(event.lost),
      }
    }
    case 'command': {
      const { kind, action, execution } = event
      return { kind, action, ...common, run: execution.run, command: executionJson(execution) }
    }
  }
}

export const eventPageJson = ({ events, next }: results.EventsResult) => ({
  events: events.map(eventJson),
  next: orNull(next),
})

/** What `subscribe` tells. */
export function timelineEventJson(told: results.TimelineEvent) {
  if (told.kind === 'following') return { kind: told.kind, cursor: told.cursor }
  if (told.kind === 'head') return { kind: told.kind, head: orNull(told.head) }
  return eventJson(told)
}
