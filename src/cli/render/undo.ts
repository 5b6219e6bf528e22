import type { UndoResult } from '../../index.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'
import { changedPaths, restoreText } from './restore.ts'

export function undoText(result: UndoResult, direction: 'undo' | 'redo', style: Style): string {
  const [done, back] = direction === 'undo' ? (['Undone', 'redo'] as const) : (['Redone', 'undo'] as const)
  const heading = `${done}: ${showText(result.operation.summary)}${result.effect === '' ? '' : ` (${showText(result.effect)})`}\n`
  const changed = result.restore ? changedPaths(result.restore) : []
  const next = `To ${back}: ${style.bold(style.wayBack(back, changed))}\n`
  if (!result.restore) return heading + next
  // The operation of a step is not one to undo: the way back is the other direction.
  const restored = { ...result.restore, snapshot: undefined, operation: undefined }
  return (
    heading +
    restoreText(restored, { done: 'Files', would: 'Files', undo: '', before: result.operation.before }, style) +
    next
  )
}
