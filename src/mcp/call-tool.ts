/** A call of a tool, from its parameters to its answer: a page of text, and the same as data. */
import { checkInput, findOperation } from '../api/table.ts'
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { fillPage, type Page, shortenLines } from './page.ts'
import type { Session } from './session.ts'
import type { Answer, PageInput, Tool } from './tool.ts'
import { fullInput } from './tools.ts'

export interface ToolAnswer {
  text: string
  structured: Record<string, unknown>
}

/** What a page has besides its elements may take up to this part of it. */
const HEAD_SHARE = 0.5

export async function callTool(tool: Tool, given: unknown, session: Session): Promise<ToolAnswer> {
  const input = checkInput({ name: tool.name, input: fullInput(tool) }, given) as Record<string, unknown> & PageInput
  const isDone = findOperation(tool.operation).effect !== 'read' && input.dry_run !== true
  if (isDone && input.start_index > 0) throw twice(tool)
  const answer = await tool.answer(session.call, input)
  const head = [...answer.head, ...scopeLines(tool, input, session)]
  if (!answer.list) {
    const structured = { ...answer.facts, notices: session.notices }
    return { text: lines(head, [], session.notices, answer.foot), structured }
  }
  const { start_index, max_length, format } = input
  const shownHead = shortenLines(head, max_length * HEAD_SHARE)
  const { key, total } = answer.list
  const around = { ...answer.facts, start_index, total, next_start_index: total, notices: session.notices }
  const beside = Math.max(lines(shownHead, [], session.notices, answer.foot).length, JSON.stringify(around).length)
  const page = await fillPage(answer.list, start_index, max_length - Math.min(beside, max_length * HEAD_SHARE))
  const values = page.items.map(({ value }) => value)
  const structured = { ...around, [key]: values, next_start_index: isDone ? null : page.next }
  const texts = page.items.map(({ text }) => text)
  const isLast = page.next === null || isDone
  const foot = [...pageLines(answer, page, start_index, isDone), ...(isLast ? (answer.foot ?? []) : [])]
  const text = format === 'json' ? JSON.stringify(structured) : lines(shownHead, texts, session.notices, foot)
  return { text, structured }
}

const lines = (head: string[], items: string[], notices: string[], foot: string[] = []): string =>
  [...head, ...items, ...notices.map(notice => `Note: ${notice}`), ...foot].join('\n')

/** To ask for the next page of something that changes files would be to do it again, or to do more: undo, undo. */
const twice = ({ name }: Tool) =>
  new SavepointError('usage', `Cannot call ${name}: start_index goes with dry_run, else it would be done again`, {
    hint: 'Without start_index it is done as a whole; snapshots_show and snapshots_diff list what it changed',
  })

/** Says that there is more, and how to get it; or that there was nothing at this place. */
function pageLines({ list }: Answer, page: Page, start: number, isDone: boolean): string[] {
  if (isDone) return page.next === null ? [] : [`[${list!.total! - page.next} more are done, and not listed]`]
  const of = list!.total === null ? '' : ` of ${list!.total}`
  if (page.next !== null) return [`[${start} to ${page.next - 1}${of} shown; the next page: start_index=${page.next}]`]
  if (page.items.length === 0 && start > 0)
    return [`[Nothing from ${start} on: there are ${plural('element', list!.total ?? start)}]`]
  return []
}

/** In a subdirectory what changes files stays inside of it, as on the command line. */
function scopeLines(tool: Tool, input: Record<string, unknown>, { subdirectory }: Session): string[] {
  const isScoped = tool.operation === 'rollback' && subdirectory !== '' && input.paths === undefined
  return isScoped ? [`Only ${subdirectory}/, where this server was started; paths: ["."] takes everything`] : []
}
