/**
 * Changes one table of a TOML text (`[mcp_servers.savepoint]`) and nothing else. It is not a reader of TOML: it knows headers,
 * and strings of several lines, in which there are none. What is written in a way that it does not know it refuses.
 */

/** `[a.b]` of a path, with keys that need it in quotes. */
export const headerOf = (path: readonly string[]): string =>
  `[${path.map(key => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))).join('.')}]`

/** Puts a table of strings and lists of strings there. The same text when it is there already. */
export function setToml(text: string, path: readonly string[], table: Record<string, string | string[]>): string {
  const lines = Object.entries(table).map(([key, value]) => `${key} = ${tomlValue(value)}`)
  const block = [headerOf(path), ...lines]
  const { all, whole, eol } = linesOf(text)
  refuseBroken(all)
  const found = rangeOf(all, path)
  if (found) {
    const isKept = othersThan(all.slice(found.start + 1, found.end), Object.keys(table))
    const rest = whole.slice(found.start + 1, found.end).filter((_, i) => isKept[i])
    const next = [...rest, ...whole.slice(found.end)].join('')
    // The last line of a file need not have an end.
    const end = next === '' && !text.endsWith('\n') ? '' : eol
    return `${whole.slice(0, found.start).join('')}${block.join(eol)}${end}${next}`
  }
  refuseOtherForms(all, path)
  const before = text.trimEnd()
  return `${before}${before === '' ? '' : eol + eol}${[...block, ''].join(eol)}`
}

/** As it stands there; '' when it does not. */
export function tableText(text: string, path: readonly string[]): string {
  const { all, whole } = linesOf(text)
  const found = rangeOf(all, path)
  return found ? whole.slice(found.start, found.end).join('') : ''
}

/** Takes it away, the tables below it included, wherever they stand. */
export function removeToml(text: string, path: readonly string[]): string {
  const { all, whole, eol } = linesOf(text)
  const found = rangeOf(all, path, true)
  if (!found) {
    // It may be there in a way that is not known here: not to see it would be to say that it is not there.
    if (text.includes(path.at(-1)!)) refuseOtherForms(all, path)
    return text
  }
  const before = whole.slice(0, found.start)
  while (before.at(-1)?.trim() === '') before.pop()
  const after = whole.slice(found.end)
  const gap = before.length > 0 && after.length > 0 && after[0]!.trim() !== '' ? [eol] : []
  const rest = [...before, ...gap, ...after].join('')
  return removeToml(rest, path)
}

const tomlValue = (value: string | string[]): string =>
  Array.isArray(value) ? `[${value.map(each => JSON.stringify(each)).join(', ')}]` : JSON.stringify(value)

/** Which lines are not of these keys. Values may go on over several. */
function othersThan(lines: string[], keys: string[]): boolean[] {
  const isOurs = (line: string) => keys.some(key => new RegExp(`^\\s*["']?${key}["']?\\s*=`).test(line))
  let state = outside
  let isDropped = false
  return lines.map(line => {
    if (isOutside(state)) isDropped = isOurs(line)
    state = after(line, state)
    return !isDropped
  })
}

/** Without and with what ends them, which need not be the same everywhere; `eol` is for what is added. */
function linesOf(text: string): { all: string[]; whole: string[]; eol: string } {
  const whole = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  return { all: whole.map(line => line.replace(/\r?\n$/, '')), whole, eol: text.includes('\r\n') ? '\r\n' : '\n' }
}

/** From its header to the next one, comments and empty lines before that not included. */
function rangeOf(
  lines: string[],
  path: readonly string[],
  withInner = false,
): { start: number; end: number } | undefined {
  const headers = headersOf(lines)
  const isInner = (keys: string[] | undefined) =>
    withInner && keys !== undefined && isEqual(keys.slice(0, path.length), path)
  const start = headers.findIndex(({ keys, isArray }) => isInner(keys) || (!isArray && isEqual(keys, path)))
  if (start < 0) return undefined
  let next = start + 1
  while (next < headers.length && isInner(headers[next]!.keys)) next++
  let end = headers[next]?.line ?? lines.length
  const first = headers[start]!.line
  while (end > first + 1 && /^\s*(#.*)?$/.test(lines[end - 1]!)) end--
  return { start: first, end }
}

const isEqual = (a: readonly string[] | undefined, b: readonly string[]) =>
  a?.length === b.length && b.every((key, i) => key === a[i])

interface Header {
  line: number
  keys: string[] | undefined
  isArray: boolean
}

/** A name in quotes may be a path, with whatever is in that: Codex has a table for each directory that it trusts. */
const header = /^\s*(\[\[?)\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'=[\]#])+?)\s*\]\]?\s*(?:#.*)?$/

function headersOf(lines: string[]): Header[] {
  const found: Header[] = []
  let state = outside
  for (const [line, text] of lines.entries()) {
    const [, brackets, name] = header.exec(text) ?? []
    if (isOutside(state) && name !== undefined) found.push({ line, keys: keysOf(name), isArray: brackets === '[[' })
    else state = after(text, state)
  }
  return found
}

/** What is open at the beginning of a line: a string of several lines, or so many brackets. */
interface State {
  string: string | undefined
  brackets: number
}
const outside: State = { string: undefined, brackets: 0 }
const isOutside = ({ string, brackets }: State): boolean => string === undefined && brackets === 0

/** How a string of several lines goes on to its end: with quotes in it, and one or two right before the end. */
const endings: Record<string, RegExp> = {
  '"""': /(?:[^"\\]|\\.|"(?!""))*"{3,5}/y,
  "'''": /(?:[^']|'(?!''))*'{3,5}/y,
}
const marks = /"""|'''|#|[[\]{}]|"(?:[^"\\]|\\.)*"|'[^']*'/g

function after(line: string, { string, brackets }: State): State {
  let [open, depth, at] = [string, brackets, 0]
  for (;;) {
    if (open !== undefined) {
      const rest = endOf(endings[open]!, line, at)
      if (rest === undefined) return { string: open, brackets: depth }
      at = rest
    }
    marks.lastIndex = at
    const mark = marks.exec(line)?.[0]
    if (mark === undefined || mark === '#') return { string: undefined, brackets: depth }
    at = marks.lastIndex
    open = mark in endings ? mark : undefined
    if (mark === '[' || mark === '{') depth++
    else if (mark === ']' || mark === '}') depth = Math.max(0, depth - 1)
  }
}

/** Where a match that begins at a place ends. */
function endOf(pattern: RegExp, line: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(line) ? pattern.lastIndex : undefined
}

/** Parts of a dotted key; undefined when it has a form that is not known here. */
function keysOf(name: string): string[] | undefined {
  const keys = [...name.matchAll(/\s*(?:([\w-]+)|("(?:[^"\\]|\\.)*")|'([^']*)')\s*(\.|$)/gy)]
  const length = keys.reduce((sum, [whole]) => sum + whole.length, 0)
  if (length !== name.length) return undefined
  try {
    // Most escapes are those of JSON.
    return keys.map(([, bare, quoted, literal]) => bare ?? (quoted === undefined ? literal! : JSON.parse(quoted)))
  } catch {
    return undefined
  }
}

/** What is neither a header nor `key = value`, and does not go on from the line before, no agent can read. */
function refuseBroken(lines: string[]): void {
  let state = outside
  for (const [at, line] of lines.entries()) {
    const isHeader = header.test(line)
    if (isOutside(state) && !isHeader && !/^\s*(#.*)?$|^\s*[\w"'-][^=]*=\s*[^\s=#,]/.test(line))
      throw new SyntaxError(`line ${at + 1}: ${line.trim()} is no TOML`)
    if (!isOutside(state) || !isHeader) state = after(line, state)
  }
}

/** `mcp_servers = {…}`, `mcp_servers.savepoint = …`, or the same inside of `[mcp_servers]`: to add a table to that would be wrong. */
function refuseOtherForms(lines: string[], [first, second]: readonly string[]): void {
  const headers = headersOf(lines)
  const strange = headers.find(({ keys, isArray }) => !keys || (isArray && isEqual(keys, [first!])))
  if (strange) throw new SyntaxError(`line ${strange.line + 1}: ${lines[strange.line]!.trim()} cannot be edited here`)
  for (const [at, line] of lines.entries()) {
    const table = headers.findLast(header => header.line < at)?.keys ?? []
    const key = keysOf(/^\s*([^=#[\]]+?)\s*=/.exec(line)?.[1] ?? '=') ?? []
    const whole = [...table, ...key]
    const isWhole = whole.length === 1 && whole[0] === first
    if (key.length > 0 && (isWhole || (whole.length <= 2 && whole[0] === first && whole[1] === second)))
      throw new SyntaxError(`line ${at + 1}: ${line.trim()} has a form that cannot be edited here`)
  }
}
