/**
 * What an MCP tool is: a row that refers to an operation of the table (src/api/table.ts) by name, has parameters of its own
 * that are mapped to the operation's, and says how the answer becomes short text. It has no logic beyond that.
 */
import type { z } from 'zod'

/** Carries out an operation of the table. */
export type Call = <T>(operation: string, input?: Record<string, unknown>) => Promise<T>

/** What it shows one after the other, so that it can be cut into pages. */
export interface Item {
  /** One or more lines. */
  text: string
  /** The same for programs. */
  value: unknown
}

export interface List {
  /** Its key in the structured answer; one of the tool's `lists`. */
  key: string
  /** How many there are; null when counting them would mean to make them all. */
  total: number | null
  /** Made when asked for, beginning with the one that the page begins with. */
  items: Iterable<Item> | AsyncIterable<Item>
}

export interface Answer {
  /** What every page begins with. */
  head: string[]
  facts: Record<string, unknown>
  list?: List
  /** What to do next. */
  foot?: string[]
}

/** Parameters of a tool with a list, added to its own. */
export interface PageInput {
  start_index: number
  max_length: number
  format: 'text' | 'json'
}

export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  name: string
  title: string
  /** Whose effect it has: annotations are made from that. */
  operation: string
  /** For the model. */
  description: string
  input: Input
  /** The structured answer without its list. */
  facts: z.ZodObject
  /** Key of a list → its elements. Of several, an answer has one. */
  lists?: Record<string, z.ZodType>
  answer(call: Call, input: z.output<Input> & PageInput): Promise<Answer>
}

/** Holds parameters and `answer` together for the compiler. */
export const tool = <Input extends z.ZodObject>(row: Tool<Input>): Tool => row as unknown as Tool

/** A list that is there as a whole: its part from `start` on. */
export const listOf = <T>(key: string, all: readonly T[], start: number, item: (each: T) => Item): List => ({
  key,
  total: all.length,
  items: (function* () {
    for (let i = start; i < all.length; i++) yield item(all[i]!)
  })(),
})
