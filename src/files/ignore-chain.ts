/**
 * The ignore files that count in a directory. Directories without ignore files of their own share the chain of their
 * parent, so a tree holds as many chains as it holds ignore files.
 */
import { type Raw, showPath } from '../model/raw-path.ts'
import type { GitFacts, IgnoreFile } from './git-facts.ts'
import { TrackedPaths } from './git-tracked.ts'
import { bothLists, type PatternList, parseIgnoreFile } from './ignore-list.ts'
import type { Pattern } from './ignore-pattern.ts'

export interface ExcludeVerdict {
  kind: 'exclude'
  /** The rule that excludes, as text for people; `line` when the rule is in a file. */
  rule: { source: string; pattern: string; line?: number }
}

/** A list of patterns and the directory that they are relative to. */
export interface BoundList {
  readonly list: PatternList
  /** What stands before a path relative to the target, after its first `cut` characters were cut off. */
  readonly prefix: Raw
  readonly cut: number
  /** What to add to the depth of a path relative to the target. */
  readonly depthOffset: number
  verdictOf(pattern: Pattern): ExcludeVerdict
}

export interface Lists {
  /** git's, the one that decides first at the front. */
  readonly git: readonly BoundList[]
  /** `.savepointignore`, likewise. */
  readonly savepoint: readonly BoundList[]
}

/** The repository that a directory belongs to. Its facts are replaced when a rule turns out to be newer than they. */
export class Repository {
  #facts: GitFacts
  #tracked: TrackedPaths

  constructor(facts: GitFacts) {
    this.#facts = facts
    this.#tracked = new TrackedPaths(facts.trackedIgnored)
  }

  get tracked(): TrackedPaths {
    return this.#tracked
  }

  /** Says that an ignore file has this content now. Gives new warnings. */
  confirm(source: Raw, content: Uint8Array): string[] {
    const before = this.#facts
    const facts = before.confirm?.(source, content) ?? before
    if (facts === before) return []
    this.#facts = facts
    this.#tracked = new TrackedPaths(facts.trackedIgnored)
    return facts.warnings.filter(warning => !before.warnings.includes(warning))
  }
}

export class Chain {
  /** Its first character says what the lists hold, so that a known key need not be accompanied by them. */
  readonly key: string
  readonly repo: Repository | undefined
  #lists: Lists | (() => Lists)

  constructor(key: string, repo: Repository | undefined, lists: Lists | (() => Lists)) {
    this.key = key
    this.repo = repo
    this.#lists = lists
  }

  get lists(): Lists {
    if (typeof this.#lists === 'function') this.#lists = this.#lists()
    return this.#lists
  }

  get hasNoPatterns(): boolean {
    return this.key.startsWith('0')
  }

  /** Whether a verdict depends on more than the name of an entry. */
  get usesPaths(): boolean {
    return this.key.startsWith('p')
  }
}

/** `others` are lists that count besides the chain's. */
export function chainKey(
  digest: string,
  { git, savepoint }: Lists,
  others: { always: BoundList; kept: BoundList },
): string {
  const excluding = [...git, ...savepoint, others.always].filter(bound => bound.list.count > 0)
  if (excluding.length === 0) return '0'
  return `${[...excluding, others.kept].some(bound => bound.list.usesPaths) ? 'p' : 'n'}${digest}`
}

/** Binds a list to a directory of the target, or to one above it, from which `prefix` leads to the target. */
export function bindList(source: string, list: PatternList, base: Raw, prefix: Raw = ''): BoundList {
  const verdicts = new Map<Pattern, ExcludeVerdict>()
  return {
    list,
    prefix: prefix === '' ? '' : `${prefix}/`,
    cut: base === '' ? 0 : base.length + 1,
    depthOffset: componentsOf(prefix) - componentsOf(base),
    verdictOf(pattern) {
      let verdict = verdicts.get(pattern)
      if (verdict === undefined) {
        verdict = { kind: 'exclude', rule: { source, pattern: showPattern(pattern.text), line: pattern.line } }
        verdicts.set(pattern, verdict)
      }
      return verdict
    },
  }
}

export function bindFile({ source, content, and }: IgnoreFile, base: Raw, prefix?: Raw): BoundList {
  const list = parseIgnoreFile(content)
  return bindList(showPath(source), and ? bothLists(list, parseIgnoreFile(and)) : list, base, prefix)
}

const componentsOf = (path: Raw): number => (path === '' ? 0 : path.split('/').length)

/** A pattern as text. Unlike a path it keeps its backslashes as they are written. */
const showPattern = (text: Raw): string =>
  Buffer.from(text, 'latin1')
    .toString('utf8')
    .replace(/[\x00-\x1f\x7f-\x9f]/g, char => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
