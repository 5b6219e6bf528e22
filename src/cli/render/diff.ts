/** Diffs for people: unified, --stat or names; and the line counts for --json --stat. */

import type { LinesJson } from '../../api/json.ts'
import { contentOf } from '../../diff/content-of.ts'
import { detectRenames } from '../../diff/renames.ts'
import { type FileStat, formatStat, statOf } from '../../diff/stat.ts'
import { unifiedDiff } from '../../diff/unified.ts'
import type { DiffResult } from '../../index.ts'
import type { Change } from '../../model/entry.ts'
import { plural } from '../../model/format.ts'
import { isGitInternal, rawToBytes } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'
import type { Output } from '../output.ts'
import { gitDirsOf } from './changes.ts'

/** So many repositories at most. */
const MAX_NAMED = 5

/** Joins what was moved, so that a rename is not a deletion and an addition. */
export const withRenames = (diff: DiffResult): DiffResult => ({
  from: diff.from,
  to: diff.to,
  changes: detectRenames(diff.changes),
  content: (change, side) => diff.content(change, side),
})

/** With renames, and without the inside of .git, which no patch can carry and nobody reads; says what is not shown. */
export function forPeople(context: Context, diff: DiffResult, withGit: boolean): DiffResult {
  const hidden = withGit ? 0 : diff.changes.filter(({ path }) => isGitInternal(path)).length
  if (hidden === 0) return withRenames(diff)
  const to = diff.to === 'live' ? '' : ` ${diff.to}`
  const repositories = gitDirsOf(diff.changes)
  const named = repositories.slice(0, MAX_NAMED).map(path => quoteWord(context.operand(path)))
  const which = repositories.length > MAX_NAMED ? 'some of them' : 'them'
  context.notice(
    `${plural('change', hidden)} inside .git not shown; to see ${which}: savepoint diff ${diff.from}${to} -- ${named.join(' ')}`,
  )
  return withRenames({ ...diff, changes: diff.changes.filter(({ path }) => !isGitInternal(path)) })
}

/** Writes one change at a time and stops when nobody reads any more. */
export async function writeUnified(diff: DiffResult, output: Output, context: number, colour: boolean): Promise<void> {
  for (const change of diff.changes) {
    for (const chunk of unifiedDiff(contentOf(diff, change), { context, colour })) {
      if (output.closed) return
      output.write(chunk)
      await output.drained()
    }
  }
}

export function statText(diff: DiffResult, width: number, colour: boolean): string {
  return formatStat(
    statsOf(diff).filter(stat => stat !== undefined),
    { width, colour },
  )
}

/** A name per line, exact to the byte as git prints them with -z off and quotePath off. */
export const namesBytes = (changes: Change[]): Buffer =>
  rawToBytes(changes.map(({ path }) => `${path || '.'}\n`).join(''))

export const linesOf = (diff: DiffResult): (LinesJson | undefined)[] =>
  statsOf(diff).map(
    stat =>
      stat && {
        insertions: stat.uncounted ? null : stat.insertions,
        deletions: stat.uncounted ? null : stat.deletions,
      },
  )

const statsOf = (diff: DiffResult): (FileStat | undefined)[] =>
  diff.changes.map(change => statOf(contentOf(diff, change)))
