/** Reads ignore files and makes the chains of lists from them. */
import { errnoOf } from '../errors/errors.ts'
import { joinRaw, type Raw, showPath } from '../model/raw-path.ts'
import type { IgnoreFile } from './git-facts.ts'
import { type BoundList, bindFile, Chain, chainKey, type Lists, Repository } from './ignore-chain.ts'
import { digestOf } from './ignore-digest.ts'
import type { Present, Scope } from './ignore-rules.ts'

/** A larger ignore file does not apply. git has the same limit. */
const IGNORE_FILE_MAX_BYTES = 100 * 1024 * 1024

/** What counts before any file of the target does. */
export function outerChain(scope: Scope): Chain {
  const { config, outer } = scope
  const files = config.ignoreGitignore ? [] : [...outer.files, outer.infoExclude, outer.globalExcludes]
  const present = files.filter(file => file !== undefined)
  const repo = config.ignoreGitignore || outer.git === undefined ? undefined : new Repository(outer.git)
  if (repo !== undefined && outer.globalExcludes !== undefined) confirm(scope, repo, outer.globalExcludes)
  const lists: Lists = {
    git: present.map(file => bindFile(file, '', file.prefix)),
    savepoint: [],
  }
  const digest = digestOf(scope.configDigest, ...present.flatMap(file => [file.prefix, ...contentsOf(file)]))
  return chainOf(scope, digest, repo, lists)
}

/**
 * The chain of the directory `path` of the target: that of its parent, and its own ignore files. With `knownKey` they
 * are read when they are needed.
 */
export function extendChain(scope: Scope, parent: Chain, path: Raw, listed: Present, knownKey?: string): Chain {
  const present = scope.config.ignoreGitignore ? { ...listed, gitignore: false, git: undefined } : listed
  if (!present.gitignore && !present.savepointignore && present.git === undefined) return parent
  const repo = present.git === undefined ? parent.repo : new Repository(present.git)
  for (const warning of present.git?.warnings ?? []) scope.onWarning(warning)
  if (knownKey !== undefined) {
    const [key] = knownKey.split(':')
    return new Chain(key!, repo, () => load(scope, parent, path, present, repo).lists)
  }
  const { digest, lists } = load(scope, parent, path, present, repo)
  return chainOf(scope, digest, repo, lists)
}

function load(scope: Scope, parent: Chain, path: Raw, present: Present, repo: Repository | undefined) {
  const savepointFile = present.savepointignore ? readRules(scope, joinRaw(path, '.savepointignore')) : undefined
  const gitFile = present.gitignore ? readRules(scope, joinRaw(path, '.gitignore')) : undefined
  if (gitFile !== undefined && repo !== undefined) confirm(scope, repo, gitFile)
  const bind = (file: IgnoreFile) => bindFile(file, path)
  const own = (file: IgnoreFile | undefined) => (file === undefined ? [] : [bind(file)])
  const { git } = present
  // A repository starts anew: the rules of the one around it do not reach into it.
  const globalExcludes = git?.globalExcludes ?? scope.outer.globalExcludes
  if (git !== undefined && repo !== undefined && globalExcludes !== undefined) confirm(scope, repo, globalExcludes)
  const start = git === undefined ? undefined : [git.infoExclude, globalExcludes]
  const startFiles = start?.filter(file => file !== undefined) ?? []
  const lists: Lists = {
    git: [...own(gitFile), ...(start === undefined ? parent.lists.git : startFiles.map(bind))],
    savepoint: [...own(savepointFile), ...parent.lists.savepoint],
  }
  const digest = digestOf(
    scope.configDigest,
    parent.key,
    path,
    savepointFile?.content,
    gitFile?.content,
    start === undefined ? undefined : digestOf(...startFiles.flatMap(contentsOf)),
  )
  return { digest, lists }
}

const contentsOf = ({ content, and }: IgnoreFile): Buffer[] => (and ? [content, and] : [content])

function chainOf(scope: Scope, digest: string, repo: Repository | undefined, lists: Lists): Chain {
  const used = (bounds: readonly BoundList[]) => bounds.filter(bound => bound.list.count > 0)
  const counted: Lists = { git: used(lists.git), savepoint: used(lists.savepoint) }
  return new Chain(chainKey(digest, counted, { always: scope.additional, kept: scope.keep }), repo, counted)
}

/** What git said about the repository may be older than this file. */
function confirm(scope: Scope, repo: Repository, file: IgnoreFile): void {
  for (const warning of repo.confirm(file.source, file.content)) scope.onWarning(warning)
}

function readRules(scope: Scope, path: Raw): IgnoreFile | undefined {
  const warn = (why: string) => scope.onWarning(`The rules of ${showPath(path)} do not apply: ${why}`)
  let content: Buffer
  try {
    content = scope.read(path)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    // Gone since the listing, or never a file: there are no rules.
    if (errno !== 'ENOENT' && errno !== 'ENOTDIR' && errno !== 'EISDIR') warn(`it cannot be read (${errno})`)
    return undefined
  }
  if (content.length > IGNORE_FILE_MAX_BYTES) {
    warn(`it is larger than ${IGNORE_FILE_MAX_BYTES} bytes`)
    return undefined
  }
  return { source: path, content, prefix: '' }
}
