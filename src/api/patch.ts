/** A page of a patch: made lazily, so that the first page of a very large one costs little. */
import { contentOf } from '../diff/content-of.ts'
import { detectRenames } from '../diff/renames.ts'
import { unifiedDiff } from '../diff/unified.ts'
import type { DiffResult, Savepoint } from '../index.ts'
import type { Change } from '../model/entry.ts'
import { isGitInternal, showPath } from '../model/raw-path.ts'

export interface PatchOptions {
  paths?: string[]
  /** Also what `exclude.keep` names. */
  kept?: boolean
  start: number
  limit: number
}

/** The inside of .git is not shown, unless a path leads there: no patch can carry it, and nobody reads it. */
export function patchPage(savepoint: Savepoint, diff: DiffResult, options: PatchOptions) {
  const isSecret = ({ path, from = path }: Change) =>
    !options.kept && (savepoint.isKept(path) || savepoint.isKept(from))
  const withGit = options.paths?.some(path => /(^|\/)\.git(\/|$)/.test(path)) ?? false
  const changes = detectRenames(diff.changes)
  const ofGit = withGit ? [] : changes.filter(({ path }) => isGitInternal(path))
  const others = withGit ? changes : changes.filter(({ path }) => !isGitInternal(path))
  const secret = others.filter(isSecret)
  const lines: string[] = []
  let next: number | null = null
  let at = 0
  for (const line of linesOf(diff, others, new Set(secret))) {
    if (at >= options.start + options.limit) {
      next = at
      break
    }
    if (at >= options.start) lines.push(line)
    at++
  }
  return {
    from: diff.from,
    to: diff.to,
    files: changes.length,
    start: options.start,
    lines,
    next,
    kept: secret.map(({ path }) => showPath(path)),
    git: ofGit.length,
  }
}

function* linesOf(diff: DiffResult, changes: Change[], left: Set<Change>): Generator<string, void> {
  for (const change of changes) {
    if (left.has(change)) continue
    let rest = ''
    // Decoded as a whole line: a chunk may end within a character.
    for (const chunk of unifiedDiff(contentOf(diff, change))) {
      const parts = (rest + chunk.toString('latin1')).split('\n')
      rest = parts.pop()!
      for (const part of parts) yield asText(part)
    }
    if (rest !== '') yield asText(rest)
  }
}

const asText = (line: string): string => Buffer.from(line, 'latin1').toString('utf8')
