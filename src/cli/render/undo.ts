import type { UndoResult } from '../../index.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'
import { changedPaths, restoreText } from './restore.ts'

const words = {
  undo: { state: 'undone', done: 'Undone', not: 'Not undone', would: 'Would undo', back: 'redo' },
  redo: { state: 'done', done: 'Redone', not: 'Not redone', would: 'Would redo', back: 'undo' },
} as const

export function undoText(result: UndoResult, direction: 'undo' | 'redo', style: Style): string {
  const { state, done, not, would, back } = words[direction]
  const { operation, restore, effect, dryRun } = result
  // Everything was left alone.
  const isNot = !dryRun && operation.state !== state
  const heading = `${dryRun ? would : isNot ? not : done}: ${showText(operation.summary)}${effect === '' ? '' : ` (${showText(effect)})`}\n`
  const changed = restore ? changedPaths(restore) : []
  const next = dryRun || isNot ? '' : `To ${back}: ${style.bold(style.wayBack(back, changed))}\n`
  if (!restore) return heading + (dryRun ? 'Nothing was changed (dry run)\n' : next)
  // The operation of a step is not one to undo: the way back is the other direction.
  const restored = { ...restore, snapshot: undefined, operation: undefined }
  const text = {
    done: 'Files',
    would: 'Files',
    undo: '',
    before: direction === 'undo' ? operation.before : operation.after,
  }
  return heading + restoreText(restored, text, style) + next
}
