/** The one renderer of errors for this face. A model must not take a failed call for a done one, and must know what to do next. */
import { asSavepointError } from '../api/as-savepoint-error.ts'
import { type ErrorCode, errorCatalogue, type SavepointError } from '../errors/errors.ts'
import { tools } from './tools.ts'

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
  'disk.full': 'tell the user that the disk of the store is full',
  'run.inside': 'tell the user, who can do it outside of the run',
}
const askTheUser = 'tell the user; `savepoint doctor` in a terminal says more'

export function failureOf(thrown: unknown, isReadOnly: boolean) {
  const error = asSavepointError(thrown)
  const { code, message, hint, data } = error
  return {
    isError: true,
    content: [{ type: 'text' as const, text: failureText(error, isReadOnly) }],
    _meta: {
      'savepoint/error': { code, exit: errorCatalogue[code].exit, message, hint: hint ?? null, data: data ?? null },
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

/** Of commands that have no tool of their own, or another one than their name says. */
const otherNames: [command: RegExp, name: string][] = [
  [/^tag$/, 'snapshots_log'],
  [/^tag --delete (.+)$/, 'snapshots_tag {name: "$1", delete: true}'],
  [/^runs$/, 'the list of resources (savepoint://runs/…)'],
]

/** No tool does that: whoever took one for it would be refused again. */
const onlyByCommand = / --(force|to|no-safety)\b/

/** Hints name commands of the command line; a model has tools. */
const withToolNames = (text: string): string =>
  text.replace(/`savepoint (([a-z]+)[^`]*)`/g, (whole, command: string, verb: string) => {
    const [pattern, name] = otherNames.find(([pattern]) => pattern.test(command)) ?? []
    if (onlyByCommand.test(command)) return whole
    if (pattern && name) return command.replace(pattern, name)
    return tools.find(tool => tool.operation === verb)?.name ?? whole
  })
