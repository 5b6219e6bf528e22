/**
 * Decides for each entry of a target whether it is captured. A walker asks one `DirRules` per directory. In order:
 *
 * 1. an entry named `.git` is captured, with everything in it;
 * 2. `.savepointignore` files and `exclude.additional` exclude, whatever the rules below say;
 * 3. a path in git's index is captured;
 * 4. `.gitignore` files, `info/exclude` and the user's global excludes decide as they do in git;
 * 5. a small file that only git's rules exclude is captured when `exclude.keep` names it.
 *
 * Paths and patterns are compared as bytes and with their case, also where git has `core.ignoreCase`: that captures
 * more, never less.
 */
import { SavepointError } from '../errors/errors.ts'
import { joinRaw, type Raw, rawFromText, showPath } from '../model/raw-path.ts'
import type { GitFacts, OuterRules } from './git-facts.ts'
import { type BoundList, bindList, type Chain, type ExcludeVerdict } from './ignore-chain.ts'
import { digestOf } from './ignore-digest.ts'
import { parseLines } from './ignore-list.ts'
import { extendChain, outerChain } from './ignore-load.ts'

export interface ExcludeConfig {
  ignoreGitignore: boolean
  /** Patterns in gitignore syntax, as text, relative to the target. */
  additional: string[]
  keep: string[]
}

export type Verdict =
  | { kind: 'capture' }
  | ExcludeVerdict
  /** An excluded directory that holds paths of git's index: enter it; only those are captured. */
  | { kind: 'tracked-only' }

/** What the listing of a directory shows: regular files of these names (git does not follow a symlink either). */
export interface Present {
  gitignore: boolean
  savepointignore: boolean
  /** What `readGitFacts` gave, when the directory has an entry `.git` that is a repository. */
  git?: GitFacts
}

export interface DirRules {
  /**
   * Stands for everything that decides the verdicts in this directory and, together with deeper ignore files and
   * repositories, below it. Equal keys give equal verdicts for equal entries.
   */
  readonly key: string
  /** Cheap enough to call for every entry. Throws only a SavepointError, and only for a defect of the matcher. */
  verdict(name: Raw, isDirectory: boolean, sizeBytes: number): Verdict
  /** The rules of a directory whose verdict is `capture` or `tracked-only`. Reads its ignore files now. */
  enter(name: Raw, present: Present): DirRules
  /**
   * Like `enter`, but reads the ignore files only when a verdict needs them. Right only when `key` is what `enter` gave
   * under a parent with the key that this one has, and the ignore files and `present.git.key` are still the same.
   */
  enterKnown(name: Raw, present: Present, key: string): DirRules
}

export interface RulesOptions {
  /** Reads a file of the target; throws errno errors. */
  read(path: Raw): Buffer
  config: ExcludeConfig
  /** Of the root of the target. */
  present: Present
  outer: OuterRules
  /** Called for each thing that makes rules not apply. */
  onWarning(text: string): void
}

/** A file that only git's rules exclude is kept up to this size. */
export const KEEP_MAX_BYTES = 1024 * 1024

/** The rules of the root of a target. */
export function createRules(options: RulesOptions): DirRules {
  const { ignoreGitignore, additional, keep } = options.config
  const scope: Scope = {
    ...options,
    configDigest: digestOf(rawFromText(JSON.stringify([ignoreGitignore, additional, keep]))),
    additional: configList('config exclude.additional', additional),
    keep: configList('config exclude.keep', keep),
  }
  for (const warning of options.outer.warnings) options.onWarning(warning)
  return new TargetRules(scope, '', 0, extendChain(scope, outerChain(scope), '', options.present), undefined)
}

/** What all directories of a target share. */
export interface Scope extends RulesOptions {
  readonly configDigest: string
  readonly additional: BoundList
  readonly keep: BoundList
}

const configList = (source: string, patterns: string[]) => bindList(source, parseLines(patterns.map(rawFromText)), '')

const CAPTURE: Verdict = Object.freeze({ kind: 'capture' })
const TRACKED_ONLY: Verdict = Object.freeze({ kind: 'tracked-only' })

/** Inside `.git` nothing is excluded: a repository with holes is none. */
const gitDirectoryRules: DirRules = {
  key: 'git',
  verdict: () => CAPTURE,
  enter: () => gitDirectoryRules,
  enterKnown: () => gitDirectoryRules,
}

/** A list with the directory whose entries are asked for, relative to the one of the list. */
interface Frame {
  readonly bound: BoundList
  readonly dir: Raw
  readonly depth: number
}
interface Frames {
  readonly git: Frame[]
  /** `.savepointignore` files, then `exclude.additional`: two sources of which each excludes by itself. */
  readonly savepoint: Frame[]
  readonly additional: Frame[]
  readonly keep: Frame[]
}

class TargetRules implements DirRules {
  readonly #scope: Scope
  readonly #path: Raw
  readonly #depth: number
  readonly #chain: Chain
  /** In a directory that is itself excluded, and entered for its tracked paths: why it is excluded. */
  readonly #only: ExcludeVerdict | undefined
  readonly #nothingExcluded: boolean
  #frames: Frames | undefined
  #key: string | undefined

  constructor(scope: Scope, path: Raw, depth: number, chain: Chain, only: ExcludeVerdict | undefined, key?: string) {
    this.#scope = scope
    this.#path = path
    this.#depth = depth
    this.#chain = chain
    this.#only = only
    this.#nothingExcluded = chain.hasNoPatterns && only === undefined
    this.#key = key
  }

  get key(): string {
    this.#key ??= this.#computeKey()
    return this.#key
  }

  verdict(name: Raw, isDirectory: boolean, sizeBytes: number): Verdict {
    if (this.#nothingExcluded || name === '.git') return CAPTURE
    try {
      return this.#decide(name, isDirectory, sizeBytes)
    } catch (cause) {
      const path = showPath(joinRaw(this.#path, name))
      throw new SavepointError('bug', `Cannot decide whether ${path} is excluded: the matcher failed`, {
        hint: 'Nothing was captured. Set exclude.ignore_gitignore: true to work on without git rules, and report this.',
        cause,
      })
    }
  }

  enter(name: Raw, present: Present): DirRules {
    return this.#child(name, present, undefined)
  }

  enterKnown(name: Raw, present: Present, key: string): DirRules {
    return this.#child(name, present, key)
  }

  #child(name: Raw, present: Present, key: string | undefined): DirRules {
    if (name === '.git') return gitDirectoryRules
    const path = joinRaw(this.#path, name)
    const only = this.#onlyBelow(name, path)
    // git does not read the ignore files of a directory that it excludes.
    const counted = only === undefined ? present : { ...present, gitignore: false, git: undefined }
    const chain = extendChain(this.#scope, this.#chain, path, counted, key)
    return new TargetRules(this.#scope, path, this.#depth + 1, chain, only, key)
  }

  #onlyBelow(name: Raw, path: Raw): ExcludeVerdict | undefined {
    if (this.#nothingExcluded || this.#scope.config.ignoreGitignore) return undefined
    const tracked = this.#chain.repo?.tracked
    if (!tracked?.hasBelow(path) || tracked.has(path)) return undefined
    return this.#only ?? find(this.#framesNow().git, name, true)
  }

  #decide(name: Raw, isDirectory: boolean, sizeBytes: number): Verdict {
    const frames = this.#framesNow()
    const always = find(frames.additional, name, isDirectory) ?? find(frames.savepoint, name, isDirectory)
    if (always !== undefined) return always
    const excluded = this.#only ?? find(frames.git, name, isDirectory)
    if (excluded === undefined) return CAPTURE
    const tracked = this.#chain.repo?.tracked
    if (tracked !== undefined && !tracked.isEmpty) {
      const path = joinRaw(this.#path, name)
      if (tracked.has(path)) return CAPTURE
      if (isDirectory && tracked.hasBelow(path)) return TRACKED_ONLY
    }
    const kept =
      this.#only === undefined && !isDirectory && sizeBytes <= KEEP_MAX_BYTES && find(frames.keep, name, false)
    return kept ? CAPTURE : excluded
  }

  #framesNow(): Frames {
    if (this.#frames === undefined) {
      const { git, savepoint } = this.#chain.lists
      this.#frames = {
        git: git.map(bound => this.#frame(bound)),
        savepoint: savepoint.map(bound => this.#frame(bound)),
        additional: this.#scope.additional.list.count === 0 ? [] : [this.#frame(this.#scope.additional)],
        keep: [this.#frame(this.#scope.keep)],
      }
    }
    return this.#frames
  }

  #frame(bound: BoundList): Frame {
    const below = this.#path.slice(bound.cut)
    const dir = bound.prefix + (below === '' ? '' : `${below}/`)
    return { bound, dir, depth: this.#depth + 1 + bound.depthOffset }
  }

  #computeKey(): string {
    // Where nothing is excluded they count, too: an ignore file further below can exclude them.
    const tracked = this.#chain.repo?.tracked.digestBelow(this.#path) ?? ''
    if (this.#nothingExcluded) return `${this.#chain.key}${tracked && `:${tracked}`}`
    const place = this.#chain.usesPaths ? `:${digestOf(this.#path)}` : ''
    return `${this.#chain.key}${place}${tracked && `:${tracked}`}${this.#only ? ':only' : ''}`
  }
}

/** The verdict of the last matching pattern of the first list that has one, if it excludes. */
function find(frames: Frame[], name: Raw, isDirectory: boolean): ExcludeVerdict | undefined {
  for (let i = 0; i < frames.length; i++) {
    const { bound, dir, depth } = frames[i]!
    const pattern = bound.list.find(name, isDirectory, dir, depth)
    if (pattern !== undefined) return pattern.negative ? undefined : bound.verdictOf(pattern)
  }
  return undefined
}
