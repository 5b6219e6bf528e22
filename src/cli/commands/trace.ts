import type { Command } from 'commander'
import { executionJson, traceJson } from '../../api/json-trace.ts'
import { SavepointError } from '../../errors/errors.ts'
import { type Execution, hasFailed, type Savepoint, type TraceResult } from '../../index.ts'
import { plural } from '../../model/format.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { executionLine, treeLines, wholeCommand } from '../render/trace.ts'
import { showText } from '../text.ts'

interface Options {
  tree?: boolean
  follow?: boolean
  failed?: boolean
  grep?: string
}

export function register(program: Command): void {
  define(program, {
    name: 'trace',
    group: 'look',
    summary: 'show what a run executed',
    description:
      'Lists every command that a run executed: when it began, how long it took, how it ended. The newest run when none ' +
      'is named. `exec` as the end of a command means that its process became the next one, ' +
      '`outlived` that it goes on although the run is over, or that its end was not seen. What such a process executes ' +
      'is marked `after the run`.',
    usage: '[RUN] [--tree] [--failed] [--grep REGEX] [--follow]',
    examples: [
      ['trace', 'of the newest run'],
      ['trace --tree', 'who started whom'],
      ['trace run_k3m9x2ab --failed', 'only what failed'],
      ['trace --follow', 'watch a run that is going on'],
    ],
  })
    .argument('[run]', 'a run')
    .option('--tree', 'as a tree of processes')
    .option('--failed', 'only commands that failed')
    .option('--grep <regex>', 'only commands whose line matches')
    .option('-f, --follow', 'go on until the run ends')
    .action(
      handle<Options>(async (context, { words: [run], options }) => {
        const savepoint = await context.list({ upToDate: true })
        const visible = filterOf(options)
        if (options.follow) return follow(context, savepoint, run, visible)
        const result = savepoint.trace(run)
        const executions = result.executions.filter(visible)
        if (context.options.json) return context.json(traceJson({ ...result, executions }))
        if (context.options.quiet) return context.lines(executions.map(({ id }) => String(id)))
        await context.paged(output => {
          if (result.executions.length === 0) output.write(`${nothingOf(result)}\n`)
          else if (executions.length === 0) output.write(`No command of ${result.run.id} ${whichNot(options)}\n`)
          const shown = { startedAt: result.run.startedAt, isOver: result.isOver }
          const lines = options.tree
            ? treeLines(result.executions, visible, shown, context.style)
            : executions.map(execution => executionLine(execution, shown, context.style))
          for (const line of lines) output.write(line)
          const failed = executions.filter(hasFailed).length
          if (executions.length > 0)
            output.write(
              `${plural('command', executions.length)}${failed > 0 ? `, ${failed} failed` : ''} (${result.run.id})\n`,
            )
        })
      }),
    )
}

const nothingOf = ({ run, isOver }: TraceResult): string =>
  isOver ? `Nothing is traced of ${run.id}` : `Nothing is traced of ${run.id} yet: it goes on`

const whichNot = ({ failed, grep }: Options): string =>
  grep === undefined ? 'failed' : `${failed ? 'failed and ' : ''}matches ${showText(grep)}`

function filterOf({ failed, grep }: Options): (execution: Execution) => boolean {
  const pattern = grep === undefined ? undefined : toPattern(grep)
  return execution => (!failed || hasFailed(execution)) && (!pattern || pattern.test(wholeCommand(execution)))
}

function toPattern(source: string): RegExp {
  try {
    return new RegExp(source)
  } catch (cause) {
    throw new SavepointError('usage', `Cannot search for ${source}: it is no regular expression`, { cause })
  }
}

/** A command is shown when it has ended, or when the run has. */
const follow = (
  context: Context,
  savepoint: Savepoint,
  ref: string | undefined,
  visible: (execution: Execution) => boolean,
): Promise<void> =>
  savepoint.followTrace(ref, (execution, run) => {
    if (!visible(execution)) return
    if (context.options.json) context.output.write(`${JSON.stringify(executionJson(execution))}\n`)
    else context.output.write(executionLine(execution, run, context.style))
  })
