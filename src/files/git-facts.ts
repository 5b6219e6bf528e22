/**
 * What the rules need to know from git about a repository: its private excludes, and which paths are in its index
 * although its ignore rules exclude them. Asking git for those costs a process and a pass over the index, so the answer
 * is remembered in a cache that the caller keeps, for as long as the index and the ignore files are the same.
 */
import { constants, lstatSync, realpathSync } from 'node:fs'
import { joinRaw, type Raw, rawFromBytes, rawToBytes, showPath } from '../model/raw-path.ts'
import { findGitDir, type GitDir, joinBytes, tryRead, tryStat } from './git-dir.ts'
import { digestOf } from './ignore-digest.ts'
import { type GitCommand, type GitOptions, type GitResult, notInstalled, runGit, runGitSync } from './run-git.ts'
import { isSparseIndex, listTrackedIgnored } from './sparse-index.ts'
import { excludesPattern } from './user-git-config.ts'

/** An ignore file that was read. `source` is its path relative to the target, or absolute. */
export interface IgnoreFile {
  source: Raw
  content: Buffer
  /** For a file that lies above the target: the way from its directory to the target. Otherwise ''. */
  prefix: Raw
  /** Another content: only what both exclude is excluded. */
  and?: Buffer
}

export interface GitFacts {
  /** The work tree relative to the target: '' is the target itself, '../..' a repository around it. */
  readonly repoRoot: Raw
  readonly infoExclude: IgnoreFile | undefined
  /** When the repository names its own `core.excludesFile`: what counts in place of the user's. */
  readonly globalExcludes: IgnoreFile | undefined
  /** Relative to the target. */
  readonly trackedIgnored: ReadonlySet<Raw>
  /** Changes when any of the above changes, and not when the index is merely written again. */
  readonly key: string
  readonly warnings: string[]
  /**
   * Says that an ignore file of the repository has this content now. Gives facts that hold for it: these, or new ones
   * when these were remembered from a time when it had another content. Then it asks git, and blocks meanwhile.
   */
  confirm?(source: Raw, content: Uint8Array): GitFacts
}

/** Remembered answers, for one target. The caller stores them; losing them costs time only. */
export interface GitFactsCache {
  get(key: string): string[] | undefined
  set(key: string, value: string[]): void
}

export interface FactsOptions {
  cache: GitFactsCache
  /** The environment of the user. */
  env: NodeJS.ProcessEnv
  timeoutMs?: number
  /** What `core.excludesFile` was last, by directory, where that is believed for a while. */
  answers?: Map<Raw, Buffer | undefined>
}

export const GIT_TIMEOUT_MS = 10_000
/** Private and global excludes above this size do not apply. git has the same limit. */
const EXCLUDES_MAX_BYTES = 100 * 1024 * 1024
/** An ignore file that changed less than this before git was asked may have changed after git read it. */
const SETTLED_MS = 50

/** The facts of the repository at `repoRoot` of the target; undefined when its `.git` is not one. Never throws. */
export async function readGitFacts(
  target: Buffer,
  repoRoot: Raw,
  options: FactsOptions,
): Promise<GitFacts | undefined> {
  const workTree = repoRoot === '' ? target : joinBytes(target, repoRoot)
  const gitDir = findGitDir(workTree)
  if (gitDir === undefined) return undefined
  const warnings: string[] = []
  const excludesFile = namesExcludesFile(gitDir) ? await askExcludesFile(workTree, '', options) : undefined
  const context: Context = {
    ...options,
    target,
    repoRoot,
    gitDir,
    cwd: workTree,
    up: '',
    pathPrefix: repoRoot,
    infoExclude: readExcludes(
      joinBytes(gitDir.common, 'info/exclude'),
      joinRaw(repoRoot, '.git/info/exclude'),
      warnings,
    ),
    globalExcludes: excludesFile === undefined ? undefined : readExcludesFile(excludesFile, workTree, warnings),
    ignoreFiles: [tryRead(joinBytes(workTree, '.gitignore'), EXCLUDES_MAX_BYTES, constants.O_NOFOLLOW).content],
    warnings,
  }
  return factsIn(context)
}

/** A repository as it is asked about. */
export interface Context extends FactsOptions {
  target: Buffer
  repoRoot: Raw
  gitDir: GitDir
  /** Where git is started: its answers are relative to it. */
  cwd: Buffer
  /** Leads from there to the root of the work tree: '' or '../' repeated. */
  up: string
  /** What to put before git's answers. */
  pathPrefix: Raw
  infoExclude: IgnoreFile | undefined
  globalExcludes: IgnoreFile | undefined
  /** Ignore files that are known before the walk. */
  ignoreFiles: (Buffer | undefined)[]
  warnings: string[]
}

/** From the cache if the index and the ignore files known so far are the same, else from git. */
export async function factsIn(context: Context): Promise<GitFacts> {
  const identity = identityOf(context)
  if (identity === undefined) return makeFacts(context, [], undefined)
  const remembered = context.cache.get(`tracked ${context.repoRoot}`)
  if (remembered?.[0]?.startsWith(`${identity}/`)) {
    const [epoch, ...paths] = remembered
    return makeFacts(context, paths, { epoch: epoch!, identity, askedMs: undefined })
  }
  const askedMs = Date.now()
  return factsFromGit(context, identity, 0, askedMs, askSparse(context) ?? (await runGit(...question(context))), [])
}

/** `epoch` names one answer of git. `askedMs`: when git was asked in this process; undefined for a remembered answer. */
interface Answer {
  epoch: string
  identity: string
  askedMs: number | undefined
}

/** `fallback`: what to believe when git failed. */
function factsFromGit(
  context: Context,
  identity: string,
  count: number,
  askedMs: number,
  result: GitResult,
  fallback: Raw[],
): GitFacts {
  if (result.code !== 0) {
    return makeFacts({ ...context, warnings: [...context.warnings, cannotAsk(context, result)] }, fallback, undefined)
  }
  const names = result.stdout.toString('latin1').split('\0')
  const paths = names.filter(name => name !== '').map(name => joinRaw(context.pathPrefix, name))
  const epoch = `${identity}/${count}`
  context.cache.set(`tracked ${context.repoRoot}`, [epoch, ...paths])
  return makeFacts(context, paths, { epoch, identity, askedMs })
}

/** Without git the sentence is the same for every repository, so that a caller can say it once. */
function cannotAsk({ repoRoot }: Context, { stderr }: GitResult): string {
  const lost = (of: string) => `Tracked files${of} that ignore rules exclude may not be captured`
  if (stderr === notInstalled) return `${lost('')}: ${notInstalled}`
  const repo = repoRoot === '' ? 'the repository' : showPath(repoRoot)
  return `${lost(` of ${repo}`)}: git could not be asked (${stderr.trim().split('\n')[0]?.slice(0, 200)})`
}

function makeFacts(context: Context, paths: Raw[], answer: Answer | undefined): GitFacts {
  const { repoRoot, infoExclude, globalExcludes, warnings, cache } = context
  const trackedIgnored = new Set(paths)
  const facts: GitFacts = {
    repoRoot,
    infoExclude,
    globalExcludes,
    trackedIgnored,
    key: digestOf(infoExclude?.content, globalExcludes?.content, [...trackedIgnored].sort().join('\0')),
    warnings,
  }
  if (answer === undefined) return facts
  const { epoch, identity, askedMs } = answer
  const confirmed = new Map<Raw, Uint8Array>()
  facts.confirm = (source, content) => {
    const entry = `rules ${repoRoot}\n${source}`
    const digest = digestOf(content)
    const known = cache.get(entry)
    confirmed.set(source, content)
    if (known?.[0] === epoch && known[1] === digest) return facts
    if (askedMs !== undefined) {
      if (changedBefore(context, source, askedMs - SETTLED_MS)) cache.set(entry, [epoch, digest])
      return facts
    }
    const count = Number(epoch.slice(identity.length + 1)) + 1
    const nowMs = Date.now()
    const result = askSparse(context) ?? runGitSync(...question(context))
    const fresh = factsFromGit(context, identity, count, nowMs, result, paths)
    for (const file of confirmed) fresh.confirm?.(...file)
    return fresh
  }
  return facts
}

function question(context: Context): [GitCommand, string[], GitOptions] {
  const args = ['-z', '--cached', '--ignored', '--exclude-standard']
  return ['ls-files', args, gitOptions(context.cwd, context.up, context)]
}

/** The same where the index is sparse, which that would have git write to the repository for. undefined: it is not. */
function askSparse({ gitDir, cwd, up, ...options }: Context): GitResult | undefined {
  if (!isSparseIndex(gitDir)) return undefined
  const root = joinBytes(cwd, up)
  return listTrackedIgnored(gitDir, rawBetween(root, cwd), gitOptions(root, '', options))
}

/** From one directory to another one in it, with a slash at its end; '' when they are the same. */
function rawBetween(root: Buffer, inside: Buffer): Raw {
  const [from, to] = [root, inside].map(path => rawFromBytes(realpathSync.native(path, { encoding: 'buffer' })))
  return from === to ? '' : `${to!.slice(from === '/' ? 1 : from!.length + 1)}/`
}

const gitOptions = (cwd: Buffer, repository: string | undefined, options: FactsOptions): GitOptions => ({
  cwd,
  repository,
  env: options.env,
  timeoutMs: options.timeoutMs ?? GIT_TIMEOUT_MS,
})

/** undefined: there is no index, so nothing is tracked. */
function identityOf({ gitDir, infoExclude, ignoreFiles, globalExcludes }: Context): string | undefined {
  const index = joinBytes(gitDir.dir, 'index')
  const stat = tryStat(index)
  if (stat === undefined) return undefined
  const config = tryStat(joinBytes(gitDir.common, 'config'))
  return digestOf(
    index,
    [stat.size, stat.mtimeNs, stat.ctimeNs, stat.ino, config?.size, config?.mtimeNs, config?.ino].join(' '),
    infoExclude?.content,
    globalExcludes?.content,
    ...ignoreFiles,
  )
}

function changedBefore({ target }: Context, source: Raw, timeMs: number): boolean {
  const path = source.startsWith('/') ? rawToBytes(source) : joinBytes(target, source)
  try {
    return lstatSync(path).ctimeMs < timeMs
  } catch {
    return false
  }
}

/** Spares a process for the many repositories that leave `core.excludesFile` alone. */
export function namesExcludesFile(gitDir: GitDir): boolean {
  const { content, problem } = tryRead(joinBytes(gitDir.common, 'config'), EXCLUDES_MAX_BYTES)
  return problem !== undefined || (content !== undefined && excludesPattern.test(content.toString('latin1')))
}

/** What `core.excludesFile` says at `cwd`; undefined when it is not set. `up`: undefined outside of any repository. */
export async function askExcludesFile(
  cwd: Buffer,
  up: string | undefined,
  options: FactsOptions,
): Promise<Buffer | undefined> {
  const key = rawFromBytes(cwd)
  if (options.answers?.has(key)) return options.answers.get(key)
  const args = ['-z', '--type=path', '--get', 'core.excludesFile']
  const { code, stdout } = await runGit('config', args, gitOptions(cwd, up, options))
  const answer = code === 0 ? stdout.subarray(0, -1) : undefined
  options.answers?.set(key, answer)
  return answer
}

/** The file that a `core.excludesFile` names, with no patterns when it does not exist. */
export function readExcludesFile(named: Buffer, workTree: Buffer, warnings: string[]): IgnoreFile {
  const path = named[0] === 0x2f ? named : joinBytes(workTree, named)
  const source = rawFromBytes(path)
  const none = { source, content: Buffer.alloc(0), prefix: '' }
  return named.length === 0 ? none : (readExcludes(path, source, warnings) ?? none)
}

export function readExcludes(path: Buffer, source: Raw, warnings: string[], flags = 0): IgnoreFile | undefined {
  const { content, problem } = tryRead(path, EXCLUDES_MAX_BYTES, flags)
  if (problem !== undefined) warnings.push(`The rules of ${showPath(source)} do not apply: ${problem}`)
  return content === undefined ? undefined : { source, content, prefix: '' }
}

/** What counts before any file of the target does. `readOuter` makes it. */
export interface OuterRules {
  /** The ignore files of the repository around the target, the nearest first. */
  readonly files: IgnoreFile[]
  readonly infoExclude: IgnoreFile | undefined
  /** The user's, as git would use them at the target. */
  readonly globalExcludes: IgnoreFile | undefined
  readonly git: GitFacts | undefined
  readonly warnings: string[]
}
