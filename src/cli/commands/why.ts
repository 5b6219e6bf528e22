import type { Command } from 'commander'
import { whyJson } from '../../api/json-trace.ts'
import type { WhyCause, WhyResult } from '../../index.ts'
import { formatAge } from '../../model/format.ts'
import type { Raw } from '../../model/raw-path.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { commandText } from '../render/trace.ts'
import type { Style } from '../style.ts'

export function register(program: Command): void {
  define(program, {
    name: 'why',
    group: 'look',
    summary: 'say which commands changed a path',
    description:
      'Lists the commands of runs that changed a path, or moved or removed a directory above it, newest first, with the ' +
      'snapshots around each, also under the names that it had before. What had no effect by those snapshots is marked. ' +
      'Where a change was only watched, the commands that ran then are named as likely, and where a trace has holes those whose calls ' +
      'are not told. What was done outside of a run is not known.',
    usage: 'PATH',
    examples: [
      ['why src/app.ts', 'who did that?'],
      ['revert src/app.ts --from snap_k3m9x2ab', 'the version before it'],
    ],
  })
    .argument('<path>', 'a file or directory')
    .option('-n, --limit <n>', 'at most this many', atMost)
    .action(
      handle<{ limit?: number }>(async (context, { words: [path], options }) => {
        const result = (await context.list({ upToDate: true })).why(path!, { limit: options.limit })
        if (context.options.json) return context.json(whyJson(result))
        context.output.write(whyText(result, context.now, context.style))
      }),
    )
}

const verbs: Record<string, string> = {
  write: 'opened for writing',
  create: 'created',
  delete: 'deleted',
  rename: 'renamed',
  exchange: 'exchanged',
  link: 'linked',
  attributes: 'attributes changed',
  truncate: 'truncated',
  inherited: 'open for writing from the start',
  changed: 'changed',
}

function whyText({ path, causes }: WhyResult, now: number, style: Style): string {
  if (causes.length === 0) return `No command of a traced run is known to have changed ${style.path(path)}\n`
  return causes.map(cause => causeText(cause, path, now, style)).join('')
}

function causeText(cause: WhyCause, path: Raw, now: number, style: Style): string {
  const { event, name, outcome, before, after } = cause
  const around = [before && `before: ${before.id}`, after && `after: ${after.id}`].filter(Boolean).join(', ')
  const what = `${style.yellow(verbs[event.op] ?? event.op)}${namesText(cause, path, style)}`
  const effect = outcome === 'unchanged' ? ` ${style.magenta('without effect: it failed, or changed nothing')}` : ''
  return [
    `${what}${name === path ? '' : ` ${style.dim(`(then ${style.path(name)})`)}`} ${formatAge(now - event.at)}${effect}`,
    `  ${whoText(cause, style)}`,
    ...(around ? [`  ${style.dim(around)}`] : []),
    '',
  ].join('\n')
}

/** Which other names the event is about. */
function namesText({ event, name }: WhyCause, path: Raw, style: Style): string {
  const isAbove = event.path !== name && event.to !== name
  const above = isAbove ? ` (${style.path(event.path ?? event.to ?? path)} above it)` : ''
  if (event.to === undefined) return above
  if (event.op === 'rename' && event.to === name)
    return ` from ${event.path === undefined ? 'outside' : style.path(event.path)}`
  return ` ${event.path === undefined ? 'from outside' : style.path(event.path)} → ${style.path(event.to)}${above}`
}

function whoText({ event, execution, likely }: WhyCause, style: Style): string {
  const where = style.dim(`(${event.pid === 0 ? '' : `pid ${event.pid}, `}${event.run})`)
  if (execution) return `by ${style.bold(commandText(execution))} ${where}`
  if (likely.length === 0) return `by a process that cannot be told ${where}`
  return `likely by ${likely.map(each => style.bold(commandText(each))).join(', or ')} ${where}`
}
