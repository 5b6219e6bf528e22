import type { Command } from 'commander'
import type { WhyResult } from '../../index.ts'
import { formatAge } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { whyJson } from '../json-trace.ts'
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
      'snapshots around each. What was done outside of a run, or in a run without a tracer, is not known.',
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
        const result = (await context.look()).why(path!, options)
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
}

function whyText({ path, causes }: WhyResult, now: number, style: Style): string {
  if (causes.length === 0) return `No command of a traced run is known to have changed ${style.path(path)}\n`
  return causes
    .map(({ event, execution, before, after }) => {
      const what = verbs[event.op] ?? event.op
      const moved =
        event.to === undefined
          ? ''
          : ` ${event.path === undefined ? 'from outside' : style.path(event.path)} → ${style.path(event.to)}`
      const above =
        event.path !== path && event.to !== path ? ` (${style.path(event.path ?? event.to ?? path)} above it)` : ''
      const around = [before && `before: ${before.id}`, after && `after: ${after.id}`].filter(Boolean).join(', ')
      return [
        `${style.yellow(what)}${moved}${above} ${formatAge(now - event.at)}`,
        `  by ${execution ? style.bold(commandText(execution)) : 'a process that cannot be told'} ${style.dim(`(pid ${event.pid}, ${event.run})`)}`,
        ...(around ? [`  ${style.dim(around)}`] : []),
        '',
      ].join('\n')
    })
    .join('')
}
