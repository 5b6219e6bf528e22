/** What an operation is: one row of the table (table.ts) that all faces are made from. */
import type { z } from 'zod'
import type { OpenOptions, Savepoint } from '../index.ts'

/** read: nothing changes. write: something is added, nothing is lost. destructive: files or history change. */
export type Effect = 'read' | 'write' | 'destructive'

/** What an operation can say and hear while it goes on. */
export interface Call {
  /** A frame before the answer. */
  send(frame: Record<string, unknown>): void
  /** Nobody waits for the answer any more. */
  signal: AbortSignal
  /** Goes on when the operation is answered: the process stays, and the timeline open, until it is settled. */
  outlive(work: Promise<unknown>): void
}

export interface Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> {
  name: string
  /** Other names of the same, which are not in lists. */
  aliases?: readonly string[]
  /** One line. */
  summary: string
  effect: Effect
  /** Twice is the same as once. Whatever only reads is. */
  isIdempotent?: boolean
  /** It may take more than a moment: others must not wait for it. Of some that depends on what is asked for. */
  isLong?: boolean | ((savepoint: Savepoint, input: z.output<Input>) => boolean)
  /** The answer is the same as long as `Savepoint.version` is. */
  isOfHistory?: boolean
  /** It changes something, but nothing that others change: it waits for none of them. */
  isUnlocked?: boolean
  /** Called so, it waits more than it works, and answers when it is cancelled or what it follows is over. */
  follows?: (input: z.output<Input>) => boolean
  /** It starts a command, in a process of its own: which ends with the caller (attached), or goes on. */
  starts?: 'attached' | 'detached'
  input: Input
  output: Output
  /** What it says before its answer, one object each. */
  frames?: z.ZodObject
  /** Of the socket protocol: its answer is not under `result`, but stands beside `ok`. */
  isFlat?: boolean
  /** How the timeline is opened for it. */
  opens?: (input: z.output<Input>) => OpenOptions
  handler(savepoint: Savepoint, input: z.output<Input>, call?: Call): Promise<z.input<Output>> | z.input<Output>
}

/** Nobody listens, and nobody goes away. */
const alone: Call = { send: () => {}, signal: new AbortController().signal, outlive: () => {} }

type Row<Input extends z.ZodObject, Output extends z.ZodType> = Omit<Operation<Input, Output>, 'handler'> & {
  handler(savepoint: Savepoint, input: z.output<Input>, call: Call): Promise<z.input<Output>> | z.input<Output>
}

/** Holds input, output and handler together for the compiler. */
export const operation = <Input extends z.ZodObject, Output extends z.ZodType>(row: Row<Input, Output>): Operation =>
  ({
    ...row,
    handler: (savepoint: Savepoint, input: z.output<Input>, call = alone) => row.handler(savepoint, input, call),
  }) as unknown as Operation

/** To read what runs did, also what a live one has not written yet. */
export const tracing = (): OpenOptions => ({ ...listing(), upToDate: true })

/** To look or to go back: a savepoint.yaml that is wrong, perhaps by what is to be undone, does not stop it. */
export const looking = (): OpenOptions => ({ withoutBrokenConfig: true })

export const listing = (): OpenOptions => ({ ...looking(), listsOnly: true })
