/** The one renderer of errors for this face: text for people, one line of JSON for programs. Both go to stderr. */
import { errnoOf, isNoRoom, SavepointError } from '../errors/errors.ts'
import { showLines } from './text.ts'
import { version } from './version.ts'

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

/** System calls that failed are the machine's state; anything else that escapes is a defect of ours. */
export function asSavepointError(thrown: unknown): SavepointError {
  if (thrown instanceof SavepointError) return thrown
  if (thrown instanceof Error && thrown.name === 'AbortError') {
    return new SavepointError('cancelled', 'Cannot finish: cancelled', {
      hint: 'Nothing is lost: `savepoint status` says where things stand',
      cause: thrown,
    })
  }
  const errno = errnoOf(thrown)
  if (errno === 'EBUSY' && 'errcode' in (thrown as object))
    return new SavepointError(
      'busy',
      'Cannot go on: another process is in the middle of writing, and does not finish',
      {
        hint: 'Is one stopped (Ctrl-Z)? Let it go on, or end it, then say the same again; nothing is lost',
        cause: thrown,
      },
    )
  if (errno) {
    const { message } = thrown as Error
    const code = isNoRoom(thrown) ? 'disk.full' : 'io.failed'
    const hint = code === 'disk.full' ? 'Free some space, then say the same again; nothing is lost' : undefined
    return new SavepointError(code, `Cannot go on: ${message}`, { hint, data: { errno }, cause: thrown })
  }
  const message = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  return new SavepointError('bug', `Cannot go on: this is a defect of Savepoint ${version} (${message})`, {
    hint: `Your files and snapshots are as the last finished step left them; please report the lines below (node ${process.version}, ${process.platform} ${process.arch})`,
    cause: thrown,
  })
}
