/** The one renderer of errors for this face. A model must not take a failed call for a done one, and must know what to do next. */
import { asSavepointError } from '../api/as-savepoint-error.ts'
import { type ErrorCode, errorCatalogue, type SavepointError } from '../errors/errors.ts'
import { withToolNames } from './tool-names.ts'

/** What may have come to nothing in the middle of a change; it is completed or taken back by the next call, as the engine promises. */
const mayBeginNevertheless = new Set<ErrorCode>([
  'failed',
  'io.failed',
  'disk.full',
  'incomplete',
  'store.damaged',
  'cancelled',
  'bug',
])

const nextSteps: Partial<Record<ErrorCode, string>> = {
  'timeline.none': 'snapshots_create begins to protect this directory',
  busy: 'wait a moment, then make the same call again',
  usage: 'make the call again with the parameters that its schema names',
  'disk.full': 'tell the user that the disk of the store is full, or the quota on it',
  'run.inside': 'tell the user, who can do it outside of the run',
}
const askTheUser = 'tell the user; `savepoint doctor` in a terminal says more'

export function failureOf(thrown: unknown, isReadOnly: boolean) {
  const error = asSavepointError(thrown)
  const { code, message, data } = error
  const hint = error.hint === undefined ? null : withToolNames(error.hint)
  return {
    isError: true,
    content: [{ type: 'text' as const, text: failureText(error, isReadOnly) }],
    _meta: {
      'savepoint/error': { code, exit: errorCatalogue[code].exit, message, hint, data: data ?? null },
    },
  }
}

export function failureText(error: SavepointError, isReadOnly: boolean): string {
  const isCertain = isReadOnly || !mayBeginNevertheless.has(error.code)
  const first = isCertain ? 'NOTHING WAS EXECUTED' : 'NOT COMPLETED'
  const look = isCertain ? [] : ['call snapshots_log and snapshots_changes to see how things stand']
  const next = [...look, withToolNames(nextSteps[error.code] ?? error.hint ?? askTheUser)].join('; then ')
  return [
    `${first}: ${error.message} (${error.code}).`,
    'There is no result: do not assume one.',
    ...(nextSteps[error.code] && error.hint ? [withToolNames(error.hint)] : []),
    `Next: ${next}`,
  ].join('\n')
}
