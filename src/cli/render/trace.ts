/** What a run executed, as a list or as a tree. */
import { formatDuration } from '../../model/format.ts'
import { rawToText } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { type Execution, hasFailed } from '../../model/trace.ts'
import type { Style } from '../style.ts'
import { shorten, showText } from '../text.ts'

const COMMAND_CHARS = 160
const TIME_CHARS = 9
const END_CHARS = 8

/** What is shown beside the executions of a run. */
export interface TracedRun {
  startedAt: number
  isOver: boolean
}

/** The command line as it was given, as far as it is known. */
export const wholeCommand = ({ argv, truncated }: Execution): string =>
  showText(argv.map(word => quoteWord(rawToText(word))).join(' ')) + (truncated ? ' …' : '')

/** The same, cut to what fits a line. */
export const commandText = (execution: Execution): string => shorten(wholeCommand(execution), COMMAND_CHARS)

/** One line: when, how long, how it ended, what. `prefix` shows where it stands in a tree. */
export function executionLine(execution: Execution, run: TracedRun, style: Style, prefix = ''): string {
  const when = `+${formatDuration(execution.at - run.startedAt)}`.padStart(TIME_CHARS)
  const took = execution.endedAt === undefined ? '' : formatDuration(execution.endedAt - execution.at)
  const end = endText(execution, run.isOver)
  const note = execution.note === undefined ? '' : `  ${style.yellow(`[${execution.note}]`)}`
  const paint = hasFailed(execution) ? style.red : execution.exitCode === undefined ? style.cyan : style.dim
  return `${style.dim(when)} ${style.dim(took.padStart(TIME_CHARS))} ${paint(end.padStart(END_CHARS))}  ${style.dim(prefix)}${commandText(execution)}${note}\n`
}

function endText({ exitCode, signal, endedAt }: Execution, isOver: boolean): string {
  if (signal !== undefined) return signal
  if (exitCode !== undefined) return String(exitCode)
  if (endedAt !== undefined) return 'exec'
  return isOver ? 'outlived' : 'running'
}

/** `visible`: those to show; the others are passed over, and what they started moves up. */
export function* treeLines(
  executions: readonly Execution[],
  visible: (execution: Execution) => boolean,
  run: TracedRun,
  style: Style,
): Generator<string> {
  const byId = new Map(executions.map(execution => [execution.id, execution]))
  const children = new Map<number, Execution[]>()
  for (const execution of executions.filter(visible)) {
    let above = byId.get(execution.parent)
    while (above && !visible(above)) above = byId.get(above.parent)
    const list = children.get(above?.id ?? 0)
    if (list) list.push(execution)
    else children.set(above?.id ?? 0, [execution])
  }
  const stack = (children.get(0) ?? []).map(execution => ({ execution, prefix: '', below: '' })).reverse()
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { execution, prefix, below } = next
    yield executionLine(execution, run, style, prefix)
    const own = children.get(execution.id) ?? []
    own.forEach((_, i) => {
      const child = own[own.length - 1 - i]!
      stack.push({
        execution: child,
        prefix: `${below}${i === 0 ? '└─ ' : '├─ '}`,
        below: `${below}${i === 0 ? '   ' : '│  '}`,
      })
    })
  }
}
