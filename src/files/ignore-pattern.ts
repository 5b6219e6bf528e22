/**
 * One pattern of an ignore file, matched as git matches it: byte by byte, the path itself only, never its parents (the
 * walker has already decided those). The `ignore` package cannot be asked that: its `test` also reports a path below an
 * ignored directory, which is wrong when a deeper ignore file has taken that directory back. Matching costs at most
 * (length of the pattern × length of the path), whatever the pattern, so a repository cannot stall a capture.
 */
import type { Raw } from '../model/raw-path.ts'

export interface Pattern {
  /** The line as it is written, without its line end and insignificant spaces. */
  readonly text: Raw
  /** Counted from 1. */
  readonly line: number
  readonly negative: boolean
  readonly directoryOnly: boolean
  readonly matcher: Matcher
}

/**
 * `name` and `suffix` and `glob` look at the last component only. `path` looks at the path relative to the directory of
 * the ignore file: first the literal `prefix`, then `segments`. `depth` is the number of components that a matching
 * path has, 0 when it varies.
 */
export type Matcher =
  | { readonly kind: 'name'; readonly name: Raw }
  | { readonly kind: 'suffix'; readonly suffix: Raw }
  | { readonly kind: 'glob'; readonly glob: Glob }
  | { readonly kind: 'path'; readonly prefix: Raw; readonly segments: readonly Segment[]; readonly depth: number }
  | { readonly kind: 'never' }

/** Codes below 256 are bytes, `ANY` one byte, `STAR` any number of bytes, above those an index into `classes`. */
interface Glob {
  readonly codes: readonly number[]
  readonly classes: readonly Uint8Array[]
}
/** `one` stands for any one component, `many` for any number of them. */
type Segment = Glob | 'one' | 'many'

const ANY = 256
const STAR = 257
const FIRST_CLASS = 258

/** Parses one line; undefined when it holds no pattern (blank, or a comment). */
export function parsePattern(rawLine: Raw, line: number): Pattern | undefined {
  if (rawLine === '' || rawLine.startsWith('#')) return undefined
  const text = trimTrailingSpaces(cutAtNul(rawLine.endsWith('\r') ? rawLine.slice(0, -1) : rawLine))
  const negative = text.startsWith('!')
  let body = negative ? text.slice(1) : text
  const directoryOnly = body.endsWith('/')
  if (directoryOnly) body = body.slice(0, -1)
  return body === '' ? undefined : { text, line, negative, directoryOnly, matcher: compile(body) }
}

/** Whether a matcher of one of the name kinds matches the last component of a path. */
export function matchesName(matcher: Matcher, name: Raw): boolean {
  if (matcher.kind === 'suffix') return name.endsWith(matcher.suffix)
  if (matcher.kind === 'glob') return globMatches(matcher.glob, name)
  return matcher.kind === 'name' && matcher.name === name
}

/** Whether a `path` matcher matches a path relative to the directory of its ignore file. */
export function matchesPath(matcher: Matcher & { kind: 'path' }, path: Raw): boolean {
  if (!path.startsWith(matcher.prefix)) return false
  const { segments } = matcher
  const parts = path.slice(matcher.prefix.length).split('/')
  let at = 0
  let resumeSegment = -1
  let resumePart = 0
  for (let part = 0; part < parts.length; ) {
    const segment = segments[at]
    if (segment === 'many') {
      resumeSegment = ++at
      resumePart = part
    } else if (segment !== undefined && (segment === 'one' || globMatches(segment, parts[part]!))) {
      at++
      part++
    } else {
      // Only the latest "**" has to be lengthened: an earlier one, made longer, leaves less for the same remainder.
      if (resumeSegment < 0) return false
      at = resumeSegment
      part = ++resumePart
    }
  }
  while (segments[at] === 'many') at++
  return at === segments.length
}

function globMatches({ codes, classes }: Glob, text: Raw): boolean {
  let at = 0
  let resumeCode = -1
  let resumeText = 0
  for (let i = 0; i < text.length; ) {
    const code = at < codes.length ? codes[at]! : -1
    if (code === STAR) {
      resumeCode = ++at
      resumeText = i
    } else if (
      code === text.charCodeAt(i) ||
      code === ANY ||
      (code >= FIRST_CLASS && classes[code - FIRST_CLASS]![text.charCodeAt(i)] === 1)
    ) {
      at++
      i++
    } else {
      if (resumeCode < 0) return false
      at = resumeCode
      i = ++resumeText
    }
  }
  while (codes[at] === STAR) at++
  return at === codes.length
}

function cutAtNul(text: Raw): Raw {
  const nul = text.indexOf('\0')
  return nul < 0 ? text : text.slice(0, nul)
}

/** Spaces at the end do not count unless a backslash stands before them. Tabs do. */
function trimTrailingSpaces(text: Raw): Raw {
  let end = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === ' ') continue
    end = i + 1
  }
  return text.slice(0, end)
}

const special = /[*?[\\]/

function compile(body: Raw): Matcher {
  if (!body.includes('/')) {
    if (!special.test(body)) return { kind: 'name', name: body }
    if (body[0] === '*' && !special.test(body.slice(1))) return { kind: 'suffix', suffix: body.slice(1) }
    const parsed = parseSegments(body)
    // Without a slash "**" is no more than "*": there is one component to match.
    const glob = parsed?.[0]
    if (parsed === undefined) return { kind: 'never' }
    return { kind: 'glob', glob: typeof glob === 'object' ? glob : { codes: [STAR], classes: [] } }
  }
  const path = body[0] === '/' ? body.slice(1) : body
  // git compares the literal beginning first and matches the rest by itself, so that "**" right after it stands at a
  // beginning: "a/b**" means more than "a/b*".
  const wild = path.search(special)
  const prefix = wild < 0 ? path : path.slice(0, wild)
  const segments = parseSegments(path.slice(prefix.length))
  if (segments === undefined) return { kind: 'never' }
  const depth = segments.includes('many') ? 0 : segments.length + prefix.split('/').length - 1
  return { kind: 'path', prefix, segments, depth }
}

/** undefined: the pattern is malformed and matches nothing. */
function parseSegments(pattern: Raw): Segment[] | undefined {
  const segments: Segment[] = []
  let codes: number[] = []
  let classes: Uint8Array[] = []
  const endSegment = () => {
    segments.push({ codes, classes })
    codes = []
    classes = []
  }
  let i = 0
  while (i < pattern.length) {
    const char = pattern[i]
    if (char === '/') {
      endSegment()
      i++
    } else if (char === '\\') {
      if (i + 1 === pattern.length) return undefined
      if (pattern[i + 1] === '/') endSegment()
      else codes.push(pattern.charCodeAt(i + 1))
      i += 2
    } else if (char === '?') {
      codes.push(ANY)
      i++
    } else if (char === '[') {
      const parsed = parseClass(pattern, i)
      if (parsed === undefined) return undefined
      codes.push(FIRST_CLASS + classes.push(parsed.members) - 1)
      i = parsed.end
    } else if (char === '*') {
      const start = i
      while (pattern[i] === '*') i++
      const wholeComponent = start === 0 || pattern[start - 1] === '/'
      if (i - start < 2 || !wholeComponent) codes.push(STAR)
      else if (i === pattern.length) return [...segments, 'one', 'many']
      else if (pattern[i] === '/') {
        segments.push('many')
        i++
      } else if (pattern[i] === '\\' && pattern[i + 1] === '/') {
        segments.push('one', 'many')
        i += 2
      } else codes.push(STAR)
    } else {
      codes.push(pattern.charCodeAt(i))
      i++
    }
  }
  endSegment()
  return segments
}

/** A bracket expression that starts at `start`; undefined when it does not end or names a class that is none. */
function parseClass(pattern: Raw, start: number): { members: Uint8Array; end: number } | undefined {
  const members = new Uint8Array(256)
  let i = start + 1
  const negated = pattern[i] === '!' || pattern[i] === '^'
  if (negated) i++
  const first = i
  // What a following "-" would start a range from; 0: nothing.
  let previous = 0
  for (; i === first || pattern[i] !== ']'; i++) {
    if (i >= pattern.length) return undefined
    const char = pattern[i]
    if (char === '[' && pattern[i + 1] === ':') {
      const close = pattern.indexOf(']', i + 2)
      if (close < 0) return undefined
      if (close > i + 2 && pattern[close - 1] === ':') {
        const isMember = namedClasses[pattern.slice(i + 2, close - 1)]
        if (isMember === undefined) return undefined
        for (let byte = 1; byte < 128; byte++) if (isMember.test(String.fromCharCode(byte))) members[byte] = 1
        previous = 0
        i = close
        continue
      }
    } else if (char === '-' && previous !== 0 && i + 1 < pattern.length && pattern[i + 1] !== ']') {
      i++
      if (pattern[i] === '\\') i++
      if (i >= pattern.length) return undefined
      for (let byte = previous; byte <= pattern.charCodeAt(i); byte++) members[byte] = 1
      previous = 0
      continue
    } else if (char === '\\') {
      i++
      if (i >= pattern.length) return undefined
    }
    previous = pattern.charCodeAt(i)
    members[previous] = 1
  }
  if (negated) for (let byte = 0; byte < 256; byte++) members[byte] = 1 - members[byte]!
  return { members, end: i + 1 }
}

// git's own classes: ASCII only, and vertical tab and form feed are not space.
const namedClasses: Record<string, RegExp | undefined> = Object.assign(Object.create(null), {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  cntrl: /[\x01-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t\n\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
})
