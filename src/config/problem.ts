/** What is wrong with configuration, and where; several problems of one file become one error. */
import { SavepointError } from '../errors/errors.ts'

export interface Problem {
  /** Both count from 1; absent when the file as a whole is meant. */
  line?: number
  column?: number
  /** The present state: "snapshots.disabled must be true or false, but is "yes"". */
  what: string
  /** A sentence with the way out. */
  fix?: string
}

const maxShownProblems = 10

/** The error for a file that cannot be used. `problems` has at least one. */
export function invalidFile(path: string, problems: Problem[], cause?: unknown): SavepointError {
  const sorted = problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
  const shown = sorted.slice(0, maxShownProblems)
  const lines = shown.map(problem => `${placeOf(path, problem)}: ${problem.what}`)
  if (sorted.length > shown.length) lines.push('and more')
  const fixes = [...new Set(shown.flatMap(problem => problem.fix ?? []))]
  return new SavepointError('config.invalid', `Cannot use ${lines.join('\n')}`, {
    hint: fixes.length > 0 ? fixes.join(' ') : `Correct ${placeOf(path, shown[0]!)} and try again.`,
    data: { file: path, problems: shown },
    cause,
  })
}

/** The error for an environment variable that cannot be used. */
export function invalidVariable(name: string, what: string, hint: string, cause?: unknown): SavepointError {
  return new SavepointError('config.invalid', `Cannot use ${name}: ${what}`, { hint, data: { variable: name }, cause })
}

const maxQuotedLength = 60
const maxPrintableLength = 200

/** Text from a file, quoted and fit to be shown. */
export function quote(text: string): string {
  return printable(JSON.stringify(shorten(text, maxQuotedLength)))
}

/** Shortened, and without characters that could steer a terminal or reorder a line. */
export function printable(text: string): string {
  return shorten(text, maxPrintableLength).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    char => `\\u{${char.codePointAt(0)!.toString(16)}}`,
  )
}

function shorten(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}

function placeOf(path: string, { line, column }: Problem): string {
  return line === undefined ? path : `${path}:${line}:${column}`
}
