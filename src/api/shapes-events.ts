/** The shapes of the log of events: `events` lists them, `subscribe` tells the same as they happen. See shapes.ts. */
import { z } from 'zod'
import { snapshotTypes } from '../model/snapshot.ts'
import { id, operation, path, snapshot, time } from './shapes.ts'
import { execution, fileEvent } from './shapes-trace.ts'

const cursor = z.string().describe('where it stands in the log')
const common = { cursor, time: time.nullable() }

const fileLogEvent = fileEvent
  .omit({ kind: true })
  .extend({
    kind: z.literal('file'),
    action: fileEvent.shape.kind,
    ...common,
    command: execution.nullable().describe('which did it, where that is known'),
  })
  .meta({ id: 'FileLogEvent' })

const snapshotLogEvent = z
  .object({
    kind: z.literal('snapshot'),
    action: z.enum(['taken', 'removed']).describe('removed: by the rules of retention, without being asked'),
    ...common,
    run: id.nullable(),
    id,
    type: z.enum(snapshotTypes).nullable(),
    command: z.string().nullable().describe('that caused it'),
    rule: z.string().nullable().describe('that removed it'),
    snapshot: snapshot.nullable().describe('as it is now; null when it is gone for good'),
    changes: z
      .object({ files: z.int(), start_event: z.int(), stop_event: z.int(), unlisted: z.int() })
      .nullable()
      .describe(
        'how many paths differ from its parent, and which file events led to it: ids above the first, up to the second',
      ),
  })
  .meta({ id: 'SnapshotLogEvent' })

const operationLogEvent = z
  .object({
    kind: z.literal('operation'),
    action: operation.shape.kind,
    ...common,
    run: id.nullable().describe('that it is about, or of which a process asked for it'),
    operation,
  })
  .meta({ id: 'OperationLogEvent' })

const runLogEvent = z
  .object({
    kind: z.literal('run'),
    action: z
      .enum(['started', 'ended', 'interrupted', 'lost'])
      .describe(
        'interrupted: its supervisor was killed, and somebody else has noticed; lost: events of it were not seen',
      ),
    ...common,
    run: id,
    command: z.array(z.string()),
    cwd: path,
    pid: z.int().nullable().describe('of its supervisor'),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
    lost: z.int().nullable().describe('how many'),
  })
  .meta({ id: 'RunLogEvent' })

const commandLogEvent = z
  .object({
    kind: z.literal('command'),
    action: z.enum(['started', 'ended']),
    ...common,
    run: id,
    command: execution,
  })
  .meta({ id: 'CommandLogEvent' })

const logEvents = [fileLogEvent, snapshotLogEvent, operationLogEvent, runLogEvent, commandLogEvent] as const

export const event = z.discriminatedUnion('kind', logEvents).meta({ id: 'Event' })

export const eventPage = z
  .object({
    events: z.array(event),
    next: z.string().nullable().describe('the cursor of the next page; null at the end'),
  })
  .meta({ id: 'EventPage' })

export const timelineEvent = z
  .discriminatedUnion('kind', [
    ...logEvents,
    z
      .object({ kind: z.literal('following'), cursor })
      .meta({ id: 'FollowingEvent' })
      .describe('what happens from now on is told'),
    z
      .object({ kind: z.literal('head'), head: id.nullable() })
      .meta({ id: 'HeadEvent' })
      .describe('HEAD is another one now'),
  ])
  .meta({ id: 'TimelineEvent' })
