import type { ListedRun } from '../../index.ts'
import { formatAge, formatDuration } from '../../model/format.ts'
import { quoteCommand } from '../../model/shell-quote.ts'
import type { Operation } from '../../model/snapshot.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { shorten, showText } from '../text.ts'

const commandChars = 100

const states: Record<Operation['state'], string> = {
  done: 'can be undone',
  undone: 'can be redone',
  past: '',
  fixed: '',
}

/** Newest first as given; says which ones `undo` and `redo` can still reach. */
export function operationTable(operations: Operation[], now: number, style: Style): string {
  if (operations.length === 0) return 'No operations yet\n'
  const rows = operations.map(operation => [
    operation.id,
    operation.kind,
    formatAge(now - operation.at),
    stateText(operation, style),
    showText(operation.summary) +
      (operation.rule === undefined ? '' : style.dim(` (rule: ${showText(operation.rule)})`)),
  ])
  return renderTable(
    [{ title: 'ID' }, { title: 'KIND' }, { title: 'WHEN' }, { title: 'STATE' }, { title: 'WHAT' }],
    rows,
    style,
  )
}

function stateText({ state, detail, before }: Operation, style: Style): string {
  if (detail.unprotected === true) return style.red(before === undefined ? 'not protected' : 'end not captured')
  return state === 'undone' ? style.yellow(states.undone) : style.green(states[state])
}

export function runTable(runs: ListedRun[], now: number, style: Style): string {
  if (runs.length === 0) return `No runs yet. Start one: ${style.command('run -- COMMAND')}\n`
  const rows = runs.map(run => [
    run.id,
    exitText(run, style),
    style.yellow(takenBackText(run)),
    formatAge(now - run.startedAt),
    run.endedAt === undefined ? '' : formatDuration(run.endedAt - run.startedAt),
    shorten(showText(quoteCommand(run.command)), commandChars),
  ])
  const columns = ['ID', 'EXIT', 'STATE', 'STARTED', 'TOOK', 'COMMAND'].map(title => ({ title }))
  return renderTable(columns, rows, style)
}

function takenBackText({ takenBack }: ListedRun): string {
  if (!takenBack) return ''
  if (takenBack.kind === 'undo') return 'undone'
  return takenBack.partly ? 'partly taken back' : 'taken back'
}

function exitText(run: ListedRun, style: Style): string {
  if (run.isInterrupted) return style.red('interrupted')
  if (run.signal !== undefined) return style.red(run.signal)
  if (run.exitCode !== undefined) return run.exitCode === 0 ? '0' : style.red(String(run.exitCode))
  return run.endedAt === undefined ? style.cyan('running') : '?'
}
