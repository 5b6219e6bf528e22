/** What happened to a path, as one letter: for all who list changes. */
import type { ChangeKind } from './entry.ts'

export const changeLetters: Record<ChangeKind, string> = {
  added: 'A',
  modified: 'M',
  deleted: 'D',
  renamed: 'R',
  metadata: 'm',
  'type-changed': 'T',
}

export const changesLegend = 'A added, M modified, D deleted, R renamed, T type changed, m permissions or times'
