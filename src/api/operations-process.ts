/** Operations about commands and their processes, and what happens meanwhile. */
import { z } from 'zod'
import type { Run, ServedTarget } from '../index.ts'
import { eventKinds } from './inputs.ts'
import { orNull } from './json.ts'
import { timelineEventJson } from './json-events.ts'
import { processJson } from './json-trace.ts'
import { lazyFace } from './lazy-face.ts'
import { looking, operation } from './operation.ts'
import { timelineEvent } from './shapes-events.ts'
import * as traced from './shapes-trace.ts'

const cmd = z
  .union([z.string().min(1), z.array(z.string()).min(1)])
  .describe('a command line for sh, or a program with its arguments')
const cwd = z.string().min(1).optional().describe('where it starts, relative to the target')

const toArgv = (command: string | string[]): string[] => (typeof command === 'string' ? ['sh', '-c', command] : command)

/** A run that is started so can be asked as any other. */
const face = (served: ServedTarget) => lazyFace(served, process.env)

const encoding = z.literal('base64').optional().describe('what stands there is no UTF-8, but base64')

export const processOperations = [
  operation({
    name: 'exec',
    summary: 'runs a command under protection, tells what it writes, and answers when it has ended',
    effect: 'destructive',
    isLong: true,
    starts: 'attached',
    isFlat: true,
    input: z.object({ cmd, cwd }),
    output: traced.ended,
    frames: z.object({ stdout: z.string().optional(), stderr: z.string().optional(), encoding }),
    opens: () => ({ create: true }),
    async handler(savepoint, input, { signal }) {
      const result = await savepoint.run({ command: toArgv(input.cmd), stop: signal, face })
      const head = savepoint.log().find(({ isHead }) => isHead)?.snapshot.id
      return {
        exit: result.exitCode,
        signal: orNull(result.signal),
        run: orNull(result.run?.id),
        snapshot: orNull(result.after?.id),
        head: orNull(head),
        counts: result.counts,
        stopped: orNull(result.stopped),
      }
    },
  }),
  operation({
    name: 'spawn',
    summary: 'starts a command under protection, and answers at once; it goes on without the caller',
    effect: 'destructive',
    isLong: true,
    starts: 'detached',
    input: z.object({
      cmd,
      cwd,
      output: z
        .string()
        .min(1)
        .optional()
        .describe('a file, relative to the target, to which its output is added; else it is dropped'),
    }),
    output: z.object({ run: z.string(), pid: z.int().describe('of its supervisor') }),
    opens: () => ({ create: true }),
    async handler(savepoint, input, { outlive }) {
      const started = Promise.withResolvers<Run | undefined>()
      const going = savepoint.run({ command: toArgv(input.cmd), onStart: run => started.resolve(run), face })
      outlive(going)
      going.catch(error => started.reject(error))
      const run = await started.promise
      return { run: run!.id, pid: run!.pid! }
    },
  }),
  operation({
    name: 'ps',
    summary: 'the processes of the runs of this target',
    effect: 'read',
    // It looks at every process of the machine.
    isLong: true,
    input: z.object({}),
    output: z.array(traced.process),
    opens: looking,
    handler: savepoint => savepoint.processes().map(processJson),
  }),
  operation({
    name: 'kill',
    summary: 'sends a signal to a process of a run of this target',
    effect: 'destructive',
    isUnlocked: true,
    input: z.object({
      pid: z.int().positive(),
      start: z.int().optional().describe('as `ps` says it: when the pid is another process by now, nothing is sent'),
      signal: z.string().min(1).default('SIGTERM').describe('its name or number'),
    }),
    output: traced.process.describe('the process that got it'),
    opens: looking,
    handler: (savepoint, { pid, start, signal }) => processJson(savepoint.signalProcess(pid, { start, signal })),
  }),
  operation({
    name: 'subscribe',
    summary: 'tells what happens in the timeline as it happens, until it is cancelled',
    effect: 'read',
    follows: () => true,
    input: z.object({
      kind: eventKinds,
      cursor: z.string().min(1).optional().describe('of an event: what has happened since is told first'),
    }),
    output: z.null(),
    frames: z.object({ event: timelineEvent }),
    opens: looking,
    async handler(savepoint, { kind, cursor }, { send, signal }) {
      await savepoint.subscribe(told => send({ event: timelineEventJson(told) }), { signal, kind, cursor })
      return null
    },
  }),
]
