import type { UndoResult } from '../../index.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'
import { changedPaths, restoreText } from './restore.ts'

const words = {
  undo: { done: 'Undone', would: 'Would undo', back: 'redo' },
  redo: { done: 'Redone', would: 'Would redo', back: 'undo' },
} as const

export function undoText(result: UndoResult, direction: 'undo' | 'redo', style: Style): string {
  const { done, would, back } = words[direction]
  const { operation, restore, effect, dryRun } = result
  const heading = `${dryRun ? would : done}: ${showText(operation.summary)}${effect === '' ? '' : ` (${showText(effect)})`}\n`
  const changed = restore ? changedPaths(restore) : []
  const next = dryRun ? '' : `To ${back}: ${style.bold(style.wayBack(back, changed))}\n`
  if (!restore) return heading + (dryRun ? 'Nothing was changed (dry run)\n' : next)
  // The operation of a step is not one to undo: the way back is the other direction.
  const restored = { ...restore, snapshot: undefined, operation: undefined }
  return heading + restoreText(restored, { done: 'Files', would: 'Files', undo: '' }, style) + next
}
