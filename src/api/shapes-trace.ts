/** The shapes of what is traced. See shapes.ts. */
import { z } from 'zod'
import { id, path, run, time } from './shapes.ts'

export const execution = z
  .object({
    id: z.int(),
    run: id,
    time: time.nullable(),
    pid: z.int(),
    ppid: z.int(),
    parent: z.int().nullable(),
    depth: z.int(),
    replaces: z.int().nullable(),
    command: z.string(),
    argv: z.array(z.string()),
    truncated: z.boolean(),
    cwd: path,
    ended_at: time.nullable(),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
    note: z.string().nullable(),
    duration_ms: z.number().nullable(),
  })
  .meta({ id: 'Execution' })

export const trace = z.object({ run, commands: z.array(execution) }).meta({ id: 'Trace' })

const fileEvent = z
  .object({
    id: z.int(),
    run: id.nullable(),
    time: time.nullable(),
    kind: z.enum(['created', 'modified', 'deleted', 'renamed', 'restored']),
    op: z.string(),
    path: path.nullable(),
    to: path.nullable(),
    size: z.int().nullable(),
    pid: z.int().nullable(),
    exec: z.int().nullable(),
    existed: z.boolean(),
    directory: z.boolean(),
  })
  .meta({ id: 'FileEvent' })

export const why = z
  .object({
    path,
    causes: z.array(
      z.object({
        event: fileEvent,
        name: path,
        outcome: z.enum(['changed', 'unchanged', 'unknown']),
        likely: z.array(execution),
        command: execution.nullable(),
        before: id.nullable(),
        after: id.nullable(),
      }),
    ),
  })
  .meta({ id: 'Why' })

export const event = z
  .union([
    fileEvent.extend({ type: z.literal('file'), command: execution.nullable() }),
    z.object({
      type: z.literal('snapshot'),
      snapshot: id,
      time: time.nullable(),
      origin: z.string(),
      files: z.int(),
      start_event: z.int(),
      stop_event: z.int(),
      unlisted: z.int(),
    }),
  ])
  .meta({ id: 'Event' })
