/**
 * The target is a linked worktree, or a directory inside of a work tree: what is committed there goes into a repository that no
 * snapshot has. Whoever takes a run back must know that its commits stay.
 */
import { realpathSync, statSync } from 'node:fs'
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
/** By so much the time of a file may be behind the clock. */
const TICK_MS = 10

export function sayRepositoryOutside(ctx: Context, id: string): void {
  const run = ctx.db.runs().find(each => each.id === id)
  const git = run && repositoryAround(ctx.targetPath)
  const moved = git && movesDuring(git, run)
  if (!moved) return
  const place = quoteWord(rawToText(rawFromBytes(git.common)))
  const back =
    moved.from === undefined ? '`git reflog` shows it' : `to go back to the commit before it: git reset ${moved.from}`
  ctx.notice(
    `the repository of this directory is ${place}, outside of it: what was committed while ${id} went on stays there; ${back}`,
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

/**
 * Whether HEAD was moved while the run went on, and where it was before: `OLD NEW NAME <ADDRESS> SECONDS ZONE`. `from` is undefined
 * where somebody has moved it since, who decides himself what stays, and where the log tells only that it may have been somebody
 * before or after the run: that commit would go.
 */
function movesDuring(
  { dir }: GitDir,
  { startedAt, endedAt = Date.now() }: Run,
): { from: string | undefined } | undefined {
  const file = Buffer.from(join(dir.toString('latin1'), 'logs/HEAD'), 'latin1')
  const log = tryRead(file, MAX_LOG_BYTES).content
  const lines = (log?.toString('latin1').split('\n') ?? []).flatMap(line => {
    const [, from, to, seconds, what] =
      /^([0-9a-f]{40,64}) ([0-9a-f]+) .*> (\d+) [+-]\d{4}(?:\t(.*))?$/.exec(line) ?? []
    return from ? [{ from, isMove: from !== to && !/^0+$/.test(from), at: Number(seconds) * SECOND, what }] : []
  })
  const isDuring = ({ at }: { at: number }) => at + SECOND > startedAt && at <= endedAt
  const moves = lines.filter(({ isMove }) => isMove)
  const first = moves.find(isDuring)
  if (!first) return undefined
  // It would be another branch that goes back.
  if (lines.some(line => isDuring(line) && line.what?.startsWith('checkout:'))) return { from: undefined }
  const isUntouched = (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? endedAt) + TICK_MS <= endedAt
  const isOver = moves.every(({ at }) => at + (isUntouched ? 0 : SECOND) <= endedAt)
  return { from: first.at >= startedAt && isOver ? first.from : undefined }
}
