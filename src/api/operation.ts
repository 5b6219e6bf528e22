/** What an operation is: one row of the table (table.ts) that all faces are made from. */
import type { z } from 'zod'
import type { OpenOptions, Savepoint } from '../index.ts'

/** read: nothing changes. write: something is added, nothing is lost. destructive: files or history change. */
export type Effect = 'read' | 'write' | 'destructive'

export interface Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> {
  name: string
  /** Other names of the same, which are not in lists. */
  aliases?: readonly string[]
  /** One line. */
  summary: string
  effect: Effect
  /** Twice is the same as once. Whatever only reads is. */
  isIdempotent?: boolean
  /** It may take more than a moment: others must not wait for it. */
  isLong?: boolean
  input: Input
  output: Output
  /** How the timeline is opened for it. */
  opens?: (input: z.output<Input>) => OpenOptions
  handler(savepoint: Savepoint, input: z.output<Input>): Promise<z.input<Output>> | z.input<Output>
}

/** Holds input, output and handler together for the compiler. */
export const operation = <Input extends z.ZodObject, Output extends z.ZodType>(
  row: Operation<Input, Output>,
): Operation => row as unknown as Operation

/** To look or to go back: a savepoint.yaml that is wrong, perhaps by what is to be undone, does not stop it. */
export const looking = (): OpenOptions => ({ withoutBrokenConfig: true })
