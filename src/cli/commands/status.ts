import type { Command } from 'commander'
import { statusJson } from '../../api/json.ts'
import { placeOf } from '../../api/snapshot-place.ts'
import type { InterruptedRun, StatusResult } from '../../index.ts'
import { formatAge, formatBytes, plural } from '../../model/format.ts'
import { quoteCommand } from '../../model/shell-quote.ts'
import type { Run } from '../../model/snapshot.ts'
import { define, handle } from '../define.ts'
import { changeList, changesText } from '../render/changes.ts'
import { nameOf, skippedText } from '../render/snapshot.ts'
import type { Style } from '../style.ts'
import { shorten, showText } from '../text.ts'

const listed = 20
const commandChars = 100

export function register(program: Command): void {
  define(program, {
    name: 'status',
    group: 'look',
    summary: 'what is protected here, and what changed since',
    description:
      'Says which directory is protected, where its timeline stands, what changed since the snapshot that the live ' +
      'files descend from, what cannot be captured, a run that goes on or was interrupted, and what `undo` would take back.',
    examples: [
      ['status', 'here'],
      ['status -t ~/project', 'of another directory'],
    ],
  }).action(
    handle(async context => {
      const savepoint = await context.look()
      const status = await savepoint.status()
      if (context.options.json) return context.json(statusJson(status, status.head && placeOf(savepoint, status.head)))
      context.output.write(statusText(status, context.now, context.style, context.undoStops()))
    }),
  )
}

/** `undoStops`: `undo` is about the run that goes on. */
function statusText(status: StatusResult, now: number, style: Style, undoStops: boolean): string {
  const { head, changes, lastOperation, writer } = status
  let text = `${style.bold(status.target)} ${howProtected(status)}: ${plural('snapshot', status.snapshots)}, store ${formatBytes(status.storeBytes)} in ${status.home} (backend: ${status.backend})\n`
  if (head && !changes) {
    text += `HEAD is ${nameOf(head)}, ${head.type}, ${formatAge(now - head.createdAt)}; it is not read yet: what changed since is not known\n`
  } else if (!head || !changes) {
    const none = status.snapshots === 0 ? 'No snapshot yet' : 'The live files are in no snapshot yet'
    text += isFirstUnderWay(status) ? '' : `${none}. Take one: ${style.command('snapshot')}\n`
    if (status.snapshots > 0)
      text += `To have the files of one here: ${style.command('rollback SNAP')}; ${style.command('snapshots')} lists them\n`
  } else {
    text += `HEAD is ${nameOf(head)}, ${head.type}, ${formatAge(now - head.createdAt)}\n`
    if (changes.length === 0) text += 'Nothing changed since\n'
    else
      text += `Since then: ${changesText(status.counts, changes)}\n${changeList(changes, style, listed, style.command('changes'))}`
  }
  text += skippedText(status.skipped, status.skipped.length, style)
  if (writer) text += `Busy: process ${writer.pid} (${showText(writer.purpose)})\n`
  text += runningText(status, now, style, undoStops) + interruptedText(status, now, style)
  if (lastOperation) {
    text += `Last operation: ${showText(lastOperation.summary)}, ${formatAge(now - lastOperation.at)}\n`
    const next = lastOperation.kind === 'undo' ? 'redo' : 'undo'
    // An interrupted run, or one that goes on, is what `undo` takes back first.
    if (undoStops || status.interrupted.some(({ isProtected, isNext }) => isProtected && isNext)) return text
    const { state, kind, before } = lastOperation
    const isUncaptured = kind === 'run' && state === 'fixed' && before !== undefined
    if (next === 'redo' || state === 'done' || isUncaptured || kind === 'redo')
      text += `To ${next}: ${style.bold(style.wayBack(next, status.lastChangedOutside))}\n`
  }
  return text
}

/** A run has begun before its state is captured; each change of it waits until what it changes is safe. */
const isFirstUnderWay = ({ snapshots, writer, running }: StatusResult): boolean =>
  snapshots === 0 && writer !== undefined && running.length > 0

function howProtected(status: StatusResult): string {
  if (status.snapshots > 0) return 'is protected'
  if (isFirstUnderWay(status)) return 'is protected, its first snapshot is being taken'
  return status.interrupted.some(({ isProtected }) => isProtected) ? 'has no snapshot yet' : 'is not protected yet'
}

const runText = (run: Run, now: number): string =>
  `${run.id}, ${formatAge(now - run.startedAt)}: ${shorten(showText(quoteCommand(run.command)), commandChars)}`

function runningText({ running }: StatusResult, now: number, style: Style, undoStops: boolean): string {
  const lines = running.map(run => `${style.green('Running')}: ${runText(run, now)}\n`)
  const which = running.length > 1 ? 'the newest' : 'it'
  if (running.length > 0 && undoStops)
    lines.push(`To stop ${which} and take it back: ${style.bold(style.command('undo'))}\n`)
  return lines.join('')
}

const wayBackOf = ({ run, isNext, changedOutside }: InterruptedRun, style: Style): string =>
  isNext
    ? style.wayBack('undo', changedOutside)
    : style.command(`rollback ${run.id}${changedOutside.length > 0 ? ' --all' : ''}`)

function interruptedText({ interrupted }: StatusResult, now: number, style: Style): string {
  const lines = interrupted.map(({ run, isProtected }) => {
    const what = runText(run, now)
    const end = isProtected ? 'what is there now counts as its end' : 'it was not protected'
    return `${style.red('Interrupted')}: ${what} (Savepoint was killed in it; ${end})\n`
  })
  const newest = interrupted.find(({ isProtected }) => isProtected)
  if (newest) lines.push(`To undo it: ${style.bold(wayBackOf(newest, style))}\n`)
  return lines.join('')
}
