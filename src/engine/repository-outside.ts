/**
 * The target is a linked worktree, or a directory inside of a work tree: what is committed there goes into a repository that no
 * snapshot has. Whoever takes a run back must know that its commits stay.
 */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { findGitDir, type GitDir, tryRead } from '../files/git-dir.ts'
import { isWithin, rawFromBytes, rawToText } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { parentPath } from './target-registry.ts'

const MAX_LOG_BYTES = 16 * 1024 * 1024
/** The log of git tells seconds. */
const SECOND = 1000

export function sayRepositoryOutside(ctx: Context, id: string): void {
  const run = ctx.db.runs().find(each => each.id === id)
  const git = run && repositoryAround(ctx.targetPath)
  const moved = git && movesDuring(git, run)
  if (!moved) return
  const place = quoteWord(rawToText(rawFromBytes(git.common)))
  // Whoever has committed since decides himself what stays.
  const back = moved.isLast ? `; to go back to the commit before it: git reset ${moved.from}` : ''
  ctx.notice(
    `the repository of this directory is ${place}, outside of it: what was committed while ${id} went on stays there${back}`,
  )
}

/** undefined: there is none, or it is in the target. */
function repositoryAround(target: Buffer): GitDir | undefined {
  for (let path: Buffer | undefined = target; path; path = parentPath(path)) {
    const found = findGitDir(path)
    if (!found) continue
    const [dir, common] = [found.dir, found.common].map(each => realpathSync(each, 'buffer') as unknown as Buffer)
    return isWithin(rawFromBytes(common!), rawFromBytes(target)) ? undefined : { dir: dir!, common: common! }
  }
  return undefined
}

/** Where HEAD was before it was first moved while the run went on, and whether nobody has since: `OLD NEW NAME <ADDRESS> SECONDS ZONE`. */
function movesDuring({ dir }: GitDir, { startedAt, endedAt = Date.now() }: Run) {
  const log = tryRead(Buffer.from(join(dir.toString('latin1'), 'logs/HEAD'), 'latin1'), MAX_LOG_BYTES).content
  const moves = (log?.toString('latin1').split('\n') ?? []).flatMap(line => {
    const [, from, to, seconds] = /^([0-9a-f]{40,64}) ([0-9a-f]+) .*> (\d+) [+-]\d{4}(?:\t|$)/.exec(line) ?? []
    return from && from !== to && !/^0+$/.test(from) ? [{ from, at: Number(seconds) * SECOND }] : []
  })
  const first = moves.find(({ at }) => at > startedAt - SECOND && at <= endedAt)
  return first && { from: first.from, isLast: moves.at(-1)!.at <= endedAt }
}
