/**
 * Names are bytes. Inside Savepoint every file name and relative path is a "raw" string: one character per byte
 * (latin1), so that it can be a Map key, sorts in byte order with `<`, and survives any round trip exactly.
 * Only faces turn raw strings into text (`showPath`) and text into raw strings (`rawFromText`).
 */
export type Raw = string

export const rawFromBytes = (bytes: Uint8Array): Raw =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
export const rawToBytes = (raw: Raw): Buffer => Buffer.from(raw, 'latin1')

/** What stands for a byte that is not UTF-8 in text from outside: a lone surrogate, which no text has otherwise. */
const strayByte = /([\udc80-\udcff])/u
const STRAY = 0xdc00

export const hasStrayBytes = (text: string): boolean => strayByte.test(text)

/** Reverses `textFromBytes`. */
export function rawFromText(text: string): Raw {
  if (isAscii(text)) return text
  if (!hasStrayBytes(text)) return Buffer.from(text, 'utf8').toString('latin1')
  const toRaw = (part: string, isStray: boolean) =>
    isStray ? String.fromCharCode(part.charCodeAt(0) - STRAY) : Buffer.from(part, 'utf8').toString('latin1')
  return text
    .split(strayByte)
    .map((part, i) => toRaw(part, i % 2 === 1))
    .join('')
}

/** Text as programs pass it on, without loss: bytes that are not UTF-8 become lone surrogates (as in Python). */
export const textFromBytes = (bytes: Buffer): string =>
  decodePieces(
    bytes,
    text => text,
    byte => String.fromCharCode(STRAY + byte),
  )

/** The same of a raw string. */
export const rawToText = (raw: Raw): string => (isAscii(raw) ? raw : textFromBytes(rawToBytes(raw)))

/** Joins a relative directory ('' is the root) and a name. */
export const joinRaw = (dir: Raw, name: Raw): Raw => (dir === '' ? name : `${dir}/${name}`)
export const parentOf = (path: Raw): Raw => {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '' : path.slice(0, slash)
}
export const nameOf = (path: Raw): Raw => path.slice(path.lastIndexOf('/') + 1)
/** Whether `path` is `dir` itself or lies below it ('' is the root). */
export const isWithin = (path: Raw, dir: Raw): boolean =>
  dir === '' || path === dir || path.startsWith(dir === '/' ? dir : `${dir}/`)

/** Whether a path lies in a git repository's own directory: its objects are noise to people. */
export const isGitInternal = (path: Raw): boolean =>
  path.startsWith('.git/') || path.includes('/.git/') || path === '.git'

/**
 * Whether it is the index of a repository, or of a linked worktree or submodule of it. Every `git status` writes it anew; work
 * that is staged shows in the objects, too. A branch may have the same name.
 */
export const isGitIndex = (path: Raw): boolean =>
  /(?:^|\/)\.git\/(?:(?:modules|worktrees)\/(?!(?:.*\/)?(?:refs|logs)\/).+\/)?index$/s.test(path)

/** `path` as it is written from the directory `base`; both are relative to the same root. */
export function relativeRaw(base: Raw, path: Raw): Raw {
  const from = base === '' ? [] : base.split('/')
  const to = path === '' ? [] : path.split('/')
  let shared = 0
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++
  const parts = [...from.slice(shared).map(() => '..'), ...to.slice(shared)]
  return parts.length === 0 ? '.' : parts.join('/')
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const plain = /^[ -[\]-~]*$/

/**
 * The text form of a raw path, for people and for JSON: UTF-8 where the bytes are UTF-8; a backslash as `\\`, control
 * characters as `\n`, `\t` or `\x1b`, and bytes that are not UTF-8 as `\xff`. Lossless: `rawFromShown` reverses it.
 */
export function showPath(raw: Raw): string {
  if (plain.test(raw)) return raw
  const bytes = rawToBytes(raw)
  try {
    return escapeText(strictUtf8.decode(bytes))
  } catch {
    return decodePieces(bytes, escapeText, hexEscape)
  }
}

/** Reverses `showPath`. */
export function rawFromShown(shown: string): Raw {
  if (!shown.includes('\\')) return rawFromText(shown)
  let out = ''
  let last = 0
  for (const match of shown.matchAll(/\\(?:x([0-9a-f]{2})|(.))/gs)) {
    out += rawFromText(shown.slice(last, match.index))
    const [, hex, letter] = match
    out += hex ? String.fromCharCode(Number.parseInt(hex, 16)) : letter === 'n' ? '\n' : letter === 't' ? '\t' : letter
    last = match.index + match[0].length
  }
  return out + rawFromText(shown.slice(last))
}

const hexEscape = (code: number) => `\\x${code.toString(16).padStart(2, '0')}`

function escapeText(text: string): string {
  // C1 controls (U+0080–U+009F) move a terminal's cursor as C0 ones do; their UTF-8 bytes are escaped one by one.
  return text.replace(/[\\\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, char => {
    if (char === '\\') return '\\\\'
    if (char === '\n') return '\\n'
    if (char === '\t') return '\\t'
    return [...Buffer.from(char, 'utf8')].map(hexEscape).join('')
  })
}

/** Decodes character by character what is UTF-8; `strayOf` says what becomes of the bytes between. */
function decodePieces(bytes: Buffer, textOf: (text: string) => string, strayOf: (byte: number) => string): string {
  let out = ''
  let at = 0
  while (at < bytes.length) {
    const length = utf8LengthAt(bytes, at)
    if (length === 0) {
      out += strayOf(bytes[at]!)
      at++
    } else {
      out += textOf(bytes.toString('utf8', at, at + length))
      at += length
    }
  }
  return out
}

function utf8LengthAt(bytes: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    try {
      strictUtf8.decode(bytes.subarray(at, at + length))
      return length
    } catch {}
  }
  return 0
}

/** Whether a path is one of them, lies in one, or has one in it. */
export function nearAny(paths: readonly Raw[]): (path: Raw) => boolean {
  const exact = new Set(paths)
  const around = new Set<Raw>()
  for (const path of exact) for (let at = path; at !== '' && !around.has(at); at = parentOf(at)) around.add(at)
  const isBelow = (path: Raw): boolean => exact.has(path) || (path !== '' && isBelow(parentOf(path)))
  return path => around.has(path) || isBelow(path)
}
