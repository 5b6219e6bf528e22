/** The one renderer of errors for this face: text for people, one line of JSON for programs. Both go to stderr. */
import { asSavepointError } from '../api/as-savepoint-error.ts'
import type { SavepointError } from '../errors/errors.ts'
import { showLines } from './text.ts'

export interface ErrorReport {
  /** Ends in a line feed. */
  text: string
  exitCode: number
}

export function reportError(thrown: unknown, asJson: boolean): ErrorReport {
  const error = asSavepointError(thrown)
  return { text: asJson ? jsonText(error) : plainText(error), exitCode: error.exitCode }
}

function jsonText(error: SavepointError): string {
  const { code, message, hint, data } = error
  const stack = code === 'bug' ? stackOf(error) : undefined
  return `${JSON.stringify({ error: { code, message, hint: hint ?? null, data: data ?? null, stack } })}\n`
}

function plainText(error: SavepointError): string {
  // What was typed, or stands in a file, is quoted in messages and must not steer the terminal.
  const lines = [`savepoint: ${showLines(error.message)}`]
  if (error.hint)
    lines.push(
      ...showLines(error.hint)
        .split('\n')
        .map((line, i) => (i === 0 ? `  hint: ${line}` : `        ${line}`)),
    )
  if (error.code === 'bug') lines.push(stackOf(error).replace(/^/gm, '  '))
  return `${lines.join('\n')}\n`
}

const stackOf = (error: SavepointError) => {
  const { cause } = error
  return (cause instanceof Error ? cause.stack : undefined) ?? (cause === undefined ? error.stack! : String(cause))
}
