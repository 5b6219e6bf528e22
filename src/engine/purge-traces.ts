/**
 * The part of a purge that concerns traces: rows of events of the path, and words of command lines that speak of it, which
 * may hold its content (`echo SECRET > .env`). That a command ran, and when, stays.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { type HideWords, hideText } from '../model/hide-words.ts'
import { type Raw, rawFromText, rawToText } from '../model/raw-path.ts'
import { writeDurably } from '../store/durable.ts'
import { failpoint } from '../store/failpoint.ts'
import { type Context, refuseInsideRun, requireWritable, withTimelineLock } from './context.ts'
import { leftOf } from './left-trace.ts'
import { newOperation } from './new-operation.ts'
import type { PurgedTraces } from './results.ts'
import { isInterrupted } from './run-state.ts'

/** Shorter ones stand in words that have nothing to do with them. */
const MIN_TEXT = 4

/** In the transaction of the purge. `path`: undefined when only a text is purged. */
export const purgeTraceRows = (ctx: Context, hide: HideWords, path: Raw | undefined): PurgedTraces => ({
  commands: ctx.db.hideCommands(hide),
  events: path === undefined ? 0 : ctx.db.events.forgetPath(path),
})

/** Returns how many had something. May be called again. A run that is going on may know it still, and is named. */
export function purgeTraceFiles(ctx: Context, hide: HideWords): number {
  for (const run of ctx.db.runs().filter(run => run.endedAt === undefined && !isInterrupted(ctx, run)))
    ctx.notice(`${run.id} is still going: it may write again what it knows; purge again when it has ended`)
  for (const { id } of ctx.db.runs().filter(run => leftOf(ctx, run.id) === 'going'))
    ctx.notice(`what ${id} left running is still traced, and may come in with it: purge again when that has ended`)
  const runs = join(ctx.timelineDir, 'runs')
  let changed = 0
  for (const run of existsSync(runs) ? readdirSync(runs) : []) {
    const file = join(runs, run, 'exec.jsonl')
    if (existsSync(file) && rewrite(file, hide)) changed++
    failpoint('purge:trace')
  }
  return changed
}

/** By rename. A run that is going on notices that its file has no name any more, and opens the new one (trace-recorder.ts). */
function rewrite(file: string, hide: HideWords): boolean {
  const fd = openSync(file, 'r')
  try {
    const text = readFileSync(fd, 'utf8')
    const hidden = hideInLines(text, hide)
    if (hidden === text) return false
    writeDurably(file, hidden)
    // What was written between the reading and the rename.
    const late = readFileSync(fd, 'utf8')
    if (late !== '') writeDurably(file, hidden + hideInLines(late, hide))
    return true
  } finally {
    closeSync(fd)
  }
}

/** `purge --text`: a secret that was given on a command line. Killed in between, it is to be said again. */
export async function purgeText(ctx: Context, text: string): Promise<PurgedTraces> {
  refuseInsideRun(ctx, 'purge')
  if (text.length < MIN_TEXT)
    throw new SavepointError(
      'usage',
      `Cannot purge a text of less than ${MIN_TEXT} characters: it may be part of anything`,
    )
  const hide = hideText(rawFromText(text))
  return withTimelineLock(ctx, 'purge', async () => {
    requireWritable(ctx)
    const purged = ctx.db.purging(() => ctx.db.transaction(() => purgeTraceRows(ctx, hide, undefined)))
    const files = purgeTraceFiles(ctx, hide)
    if (purged.commands + files === 0)
      throw new SavepointError('path.unknown', 'Cannot purge that text: no recorded command line has it', {
        hint: 'What is in files is purged by their path: savepoint purge PATH',
      })
    ctx.db.addOperation({ ...newOperation(ctx, 'purge', 'purge a text from command lines'), state: 'fixed' })
    return purged
  })
}

const hideInLines = (text: string, hide: HideWords): string =>
  text
    .split('\n')
    .map(line => hideInLine(line, hide))
    .join('\n')

/** A line that is not whole is of a run that was killed while it wrote it. */
function hideInLine(line: string, hide: HideWords): string {
  let event: { argv?: string[]; command?: string; cwd?: string }
  try {
    event = JSON.parse(line)
  } catch {
    return line === '' || !hide([rawFromText(line)], '/') ? line : ''
  }
  if (!event.argv) return line
  const { argv, command = '', cwd = '/' } = event
  const hidden = {
    argv: hide(argv.map(rawFromText), rawFromText(cwd))?.map(rawToText) ?? argv,
    command: hidePlace(command, hide),
    cwd: hidePlace(cwd, hide),
  }
  const isSame = hidden.argv === argv && hidden.command === command && hidden.cwd === cwd
  return isSame ? line : JSON.stringify({ ...event, ...hidden })
}

const hidePlace = (place: string, hide: HideWords): string => {
  const [hidden] = hide([rawFromText(place)], '/') ?? []
  return hidden === undefined ? place : rawToText(hidden)
}
