/** The shapes of what is traced. See shapes.ts. */
import { z } from 'zod'
import { counts, id, path, run, time } from './shapes.ts'

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

export const fileEvent = z
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
    existed: z.boolean().describe('before; of what was restored: in the state that it was restored to'),
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

export const process = z
  .object({
    pid: z.int(),
    start: z.int().describe('when it began, in ticks of the kernel: with the pid, it is this process and no later one'),
    started_at: time.nullable(),
    ppid: z.int(),
    run: id,
    state: z.string().describe('as the kernel names it: R, S, D, T'),
    argv: z.array(z.string()),
  })
  .meta({ id: 'Process' })

export const ended = z
  .object({
    exit: z.int().describe('as a shell counts: a death by signal is 128 and its number'),
    signal: z.string().nullable(),
    run: id.nullable(),
    snapshot: id.nullable().describe('the state that it left'),
    head: id.nullable(),
    counts,
    stopped: z.string().nullable().describe('who stopped it, if somebody did'),
  })
  .meta({ id: 'Ended' })
