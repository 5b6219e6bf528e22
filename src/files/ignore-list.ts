/**
 * The patterns of one ignore file in the order that git gives them: the last one that matches decides. Names without
 * wildcards are looked up, the others are tried one by one.
 */
import type { Raw } from '../model/raw-path.ts'
import { matchesName, matchesPath, type Pattern, parsePattern } from './ignore-pattern.ts'

export interface PatternList {
  readonly count: number
  /** Whether a pattern looks at more than the last component of a path. */
  readonly usesPaths: boolean
  /**
   * The pattern that decides about the entry `name`, itself only, in a directory. `dir` is that directory relative to
   * the one of the ignore file, '' or with a slash at its end; `depth` is the number of components of `dir` + `name`.
   */
  find(name: Raw, isDirectory: boolean, dir: Raw, depth: number): Pattern | undefined
}

/** Parses the bytes of an ignore file. Never fails: a malformed pattern matches nothing, as in git. */
export function parseIgnoreFile(content: Buffer): PatternList {
  const hasBom = content[0] === 0xef && content[1] === 0xbb && content[2] === 0xbf
  return parseLines(content.toString('latin1', hasBom ? 3 : 0).split('\n'))
}

/** Excludes what both do. Nothing comes after it: to bring back something else is not its matter. */
export function bothLists(one: PatternList, other: PatternList): PatternList {
  return {
    count: Math.min(one.count, other.count),
    usesPaths: one.usesPaths || other.usesPaths,
    find(...entry) {
      const found = one.find(...entry)
      const also = found && !found.negative ? other.find(...entry) : undefined
      return also && !also.negative ? found : undefined
    },
  }
}

export function parseLines(lines: Raw[]): PatternList {
  return listOf(lines.map((text, index) => parsePattern(text, index + 1)).filter(pattern => pattern !== undefined))
}

function listOf(all: Pattern[]): PatternList {
  const rank = new Map(all.map((pattern, index) => [pattern, index]))
  const names = new Map<Raw, Pattern[]>()
  const wild: Pattern[] = []
  for (const pattern of all.toReversed()) {
    const { matcher } = pattern
    if (matcher.kind === 'name') {
      const same = names.get(matcher.name)
      if (same) same.push(pattern)
      else names.set(matcher.name, [pattern])
    } else if (matcher.kind !== 'never') wild.push(pattern)
  }
  const ranked = (patterns: Pattern[]) => ({ patterns, ranks: patterns.map(pattern => rank.get(pattern)!) })
  const forDirectories = ranked(wild)
  const forFiles = ranked(wild.filter(pattern => !pattern.directoryOnly))
  return {
    count: all.length,
    usesPaths: wild.some(pattern => pattern.matcher.kind === 'path'),
    find(name, isDirectory, dir, depth) {
      const literal = names.size === 0 ? undefined : names.get(name)?.find(found => isDirectory || !found.directoryOnly)
      const literalRank = literal === undefined ? -1 : rank.get(literal)!
      const { patterns, ranks } = isDirectory ? forDirectories : forFiles
      let path: Raw | undefined
      for (let i = 0; i < patterns.length && ranks[i]! > literalRank; i++) {
        const { matcher } = patterns[i]!
        if (matcher.kind !== 'path') {
          if (matchesName(matcher, name)) return patterns[i]
        } else if (matcher.depth === 0 || matcher.depth === depth) {
          path ??= dir + name
          if (matchesPath(matcher, path)) return patterns[i]
        }
      }
      return literal
    },
  }
}
