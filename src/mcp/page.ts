/** Answers are cut into pages that fit into a context window: so many characters, in text and in JSON alike. */
import { z } from 'zod'
import type { Item, List } from './tool.ts'

const DEFAULT_LENGTH = 10_000
const MIN_LENGTH = 500
const MAX_LENGTH = 200_000
const MIN_LINE = 200

export const pageInput = {
  start_index: z
    .int()
    .nonnegative()
    .default(0)
    .describe('element to begin with; an answer says where the next page begins'),
  max_length: z
    .int()
    .min(MIN_LENGTH)
    .max(MAX_LENGTH)
    .default(DEFAULT_LENGTH)
    .describe('characters per page, about; in JSON one element may be longer'),
  format: z.enum(['text', 'json']).default('text').describe('of the text content; the structured content is the same'),
}

export const pageOutput = {
  start_index: z.int(),
  total: z.int().nullable().describe('elements of all pages; null when they are not counted'),
  next_start_index: z.int().nullable().describe('start_index of the next page; null when this is the last'),
}

export interface Page {
  items: Item[]
  next: number | null
}

/** At least one element, which is cut if it is too long on its own; so that whoever asks for all pages gets to the end. */
export async function fillPage({ items }: List, start: number, budget: number): Promise<Page> {
  const page: Item[] = []
  let used = 0
  for await (const item of items) {
    const cost = Math.max(item.text.length, JSON.stringify(item.value).length) + 1
    if (page.length > 0 && used + cost > budget) return { items: page, next: start + page.length }
    page.push(cost > budget ? cut(item, budget) : item)
    used += cost
  }
  return { items: page, next: null }
}

const cut = ({ text, value }: Item, length: number): Item => ({
  text: shorten(text, length),
  value: typeof value === 'string' ? shorten(value, length) : value,
})

/** Lines before a list, which may name a long command or long paths. Each may be important: none is left out, long ones are cut. */
export function shortenLines(lines: string[], length: number): string[] {
  const all = lines.reduce((sum, line) => sum + line.length + 1, 0)
  const each = Math.max(MIN_LINE, Math.floor(length / lines.length))
  return all <= length ? lines : lines.map(line => shorten(line, each))
}

/** Says how much is missing. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  return `${text.slice(0, length).toWellFormed()}… [${text.length - length} characters more]`
}
