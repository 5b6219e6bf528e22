/**
 * Rules that lie outside of a target: the user's excludes, and the index of a linked worktree. A state that a filesystem keeps
 * has those that lie in it, and is read later; of these it is noted what they were when it was taken.
 */
import { type Dirent, readdirSync, realpathSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { isWithin, joinRaw, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { findGitDir, joinBytes, tryRead } from './git-dir.ts'
import { type FactsOptions, type GitFacts, type IgnoreFile, type OuterRules, readGitFacts } from './git-facts.ts'
import { readOuter } from './git-outer.ts'
import { digestOf } from './ignore-digest.ts'

/** What is longer is not noted. */
const MAX_CHARACTERS = 256 * 1024
/** A snapshot takes milliseconds: not where more directories lie in the target. */
const MAX_LOOKS = 1000

export interface OutsideRules {
  /** Patterns of the user's; undefined: none, or too many to be noted. */
  excludes: Raw | undefined
  worktrees: Worktree[]
}

interface Worktree {
  /** Relative to the target. */
  root: Raw
  infoExclude: Raw | undefined
  /** See GitFacts. */
  trackedIgnored: Raw[]
}

/** `repositories`: those that are known in the target. 'too-large': not all that git's rules leave out can be noted. */
export async function readOutside(
  target: Buffer,
  repositories: readonly Raw[],
  options: FactsOptions,
): Promise<OutsideRules | 'too-large'> {
  const { globalExcludes } = await readOuter(target, options)
  const excludes = globalExcludes && rawFromBytes(globalExcludes.content)
  const worktrees: Worktree[] = []
  for (const root of new Set(['', ...repositories, ...linkedIn(target)])) {
    if (!isOutside(target, root)) continue
    const facts = await readGitFacts(target, root, options)
    if (!facts) continue
    const info = facts.infoExclude && rawFromBytes(facts.infoExclude.content)
    worktrees.push({ root, infoExclude: info, trackedIgnored: [...facts.trackedIgnored] })
  }
  if (JSON.stringify(worktrees).length > MAX_CHARACTERS) return 'too-large'
  return { excludes: excludes && excludes.length <= MAX_CHARACTERS ? excludes : undefined, worktrees }
}

/** Work trees in the target that repositories right in it know of: since git was last asked, there may be others. */
function linkedIn(target: Buffer): Raw[] {
  return ['', ...directoriesIn(target)].flatMap(root => {
    const known = findGitDir(root === '' ? target : joinBytes(target, root))
    return known ? [root, ...linkedTo(known.common, target)] : []
  })
}

function linkedTo(common: Buffer, target: Buffer): Raw[] {
  const list = joinBytes(common, 'worktrees')
  const inside = `${rawFromBytes(target)}/`
  return namesIn(list).flatMap(name => {
    const pointer = rawFromBytes(tryRead(joinBytes(list, name, 'gitdir'), MAX_CHARACTERS).content ?? Buffer.alloc(0))
    const root = pointer.replace(/\/\.git\n?$/, '')
    return root.startsWith(inside) ? [root.slice(inside.length)] : []
  })
}

function directoriesIn(directory: Buffer): Raw[] {
  const all = entriesIn(directory).filter(entry => entry.isDirectory())
  return all.length > MAX_LOOKS ? [] : all.map(({ name }) => rawFromBytes(name))
}

const namesIn = (directory: Buffer): Buffer[] => entriesIn(directory).map(({ name }) => name)

function entriesIn(directory: Buffer): Dirent<Buffer>[] {
  try {
    return readdirSync(directory, { encoding: 'buffer', withFileTypes: true })
  } catch (error) {
    if (!errnoOf(error)) throw error
    return []
  }
}

/**
 * Whether the directory is a work tree whose repository lies elsewhere: its `.git` is a link, or a file that may say `../`.
 * With its whole path in there, the kept state leads to the live one also from inside of the target.
 */
function isOutside(target: Buffer, root: Raw): boolean {
  const directory = root === '' ? target : joinBytes(target, root)
  const dir = findGitDir(directory)?.dir
  if (!dir) return false
  return !isWithin(rawFromBytes(dir), rawFromBytes(directory)) || !isWithin(realPath(dir), realPath(target))
}

const realPath = (path: Buffer): Raw => rawFromBytes(realpathSync(path, 'buffer'))

/** What the user's patterns excluded then, and exclude now, is left out; what only one of them does is not. */
export const outerOfThen = (outer: OuterRules, then: OutsideRules): OuterRules => ({
  ...outer,
  globalExcludes: bothOf(outer.globalExcludes, then),
})

/** `today`: what git says of the repository now, at the state that is kept. Where it is the same, so are the keys. */
export function factsOfThen(root: Raw, today: GitFacts | undefined, then: OutsideRules): GitFacts | undefined {
  const worktree = then.worktrees.find(each => each.root === root)
  const globalExcludes = root === '' ? bothOf(today?.globalExcludes, then) : today?.globalExcludes
  const isBoth = globalExcludes?.and ? digestOf(globalExcludes.and) : ''
  if (!worktree) return today && { ...today, globalExcludes, key: today.key + isBoth }
  const { infoExclude: info, trackedIgnored } = worktree
  const source = joinRaw(root, '.git/info/exclude')
  const infoExclude = info === undefined ? undefined : { source, content: rawToBytes(info), prefix: '' }
  const tracked = new Set([...trackedIgnored, ...(today?.trackedIgnored ?? [])])
  const key = digestOf(info, globalExcludes?.content, [...tracked].sort().join('\0')) + isBoth
  return { repoRoot: root, infoExclude, globalExcludes, trackedIgnored: tracked, key, warnings: [] }
}

function bothOf(today: IgnoreFile | undefined, { excludes = '' }: OutsideRules): IgnoreFile | undefined {
  if (!today || rawFromBytes(today.content) === excludes) return today
  return { ...today, and: rawToBytes(excludes) }
}
