/** Lists of changes, as tools show them. */
import type { z } from 'zod'
import type * as shapes from '../api/shapes.ts'
import { plural } from '../model/format.ts'
import { isGitInternal } from '../model/raw-path.ts'
import type { Item } from './tool.ts'
import { type ChangeJson, changeLine, smallChange } from './words.ts'

/** Of what stands beside a page. */
export const LISTED_CHANGES = 20

export type Shown = Omit<z.output<typeof shapes.shownSnapshot>, 'changes'> & { changes: ChangeJson[] | null }

export const changeOf = (change: ChangeJson): Item => {
  const value = smallChange(change)
  return { text: changeLine(value), value }
}

/** The inside of .git is noise to a model: it is counted. */
export function withoutGit(changes: readonly ChangeJson[]): { changes: ChangeJson[]; git: number; gitLines: string[] } {
  const outside = changes.filter(change => !isGitInternal(change.path))
  const git = changes.length - outside.length
  return { changes: outside, git, gitLines: git > 0 ? [`Not listed: ${plural('change', git)} inside .git`] : [] }
}
