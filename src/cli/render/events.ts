/** The log of events, one line each: when, what kind, and what happened. */
import type { LogEvent } from '../../index.ts'
import { formatAge, formatBytes, plural } from '../../model/format.ts'
import { quoteCommand } from '../../model/shell-quote.ts'
import type { Run } from '../../model/snapshot.ts'
import type { Execution } from '../../model/trace.ts'
import type { Style } from '../style.ts'
import { shorten, showText } from '../text.ts'
import { commandText } from './trace.ts'

const KIND_CHARS = 9
const AGE_CHARS = 14
const COMMAND_CHARS = 100

type Of<Kind extends LogEvent['kind']> = Extract<LogEvent, { kind: Kind }>

export function eventLine(event: LogEvent, now: number, style: Style): string {
  const [word, text] = wordsOf(event, style)
  return `${style.dim(formatAge(now - event.at).padEnd(AGE_CHARS))} ${word} ${text}\n`
}

function wordsOf(event: LogEvent, style: Style): [word: string, text: string] {
  const kind = event.kind.padEnd(KIND_CHARS)
  switch (event.kind) {
    case 'file': {
      // The state that was restored had no such thing.
      const action = event.action === 'restored' && !event.event.existed ? 'removed' : event.action
      return [style.yellow(action.padEnd(KIND_CHARS)), fileText(event, style)]
    }
    case 'snapshot':
      return [style.cyan(kind), `${style.bold(event.id)} ${snapshotText(event)}`]
    case 'operation':
      return [style.magenta(kind), `${style.bold(event.operation.id)} ${showText(event.operation.summary)}`]
    case 'run':
      return [style.green(kind), `${style.bold(event.of.id)} ${runText(event)}`]
    case 'command':
      return [style.blue(kind), commandLine(event)]
  }
}

function fileText({ event, execution }: Of<'file'>, style: Style): string {
  const path = event.path === undefined ? 'from outside' : style.path(event.path)
  const to = event.to === undefined ? '' : ` → ${style.path(event.to)}`
  const size = event.size === undefined ? '' : ` ${style.dim(formatBytes(event.size))}`
  const by = execution ? style.dim(` by ${commandText(execution)}`) : ''
  return `${path}${event.directory ? '/' : ''}${to}${size}${by}`
}

function snapshotText({ action, rule, type, snapshot, events }: Of<'snapshot'>): string {
  if (action === 'removed') return `removed (rule: ${showText(rule!)})`
  const count = events === undefined ? '' : `, ${plural('changed path', events.files)}`
  const more = events && events.unlisted > 0 ? `, ${events.unlisted} of them not listed` : ''
  const gone = snapshot === undefined ? ', forgotten' : snapshot.deletedAt === undefined ? '' : ', deleted'
  return `${type}${count}${more}${gone}`
}

function runText({ action, of, lost }: Of<'run'>): string {
  if (action === 'started') return `started: ${shorten(showText(quoteCommand(of.command)), COMMAND_CHARS)}`
  if (action === 'lost') return `${plural('event', lost!)} not seen`
  return action === 'interrupted' ? 'interrupted: nobody saw its end' : `ended ${endText(of)}`
}

function commandLine({ action, execution }: Of<'command'>): string {
  if (action === 'started') return `started: ${commandText(execution)}`
  return `ended ${endText(execution)}: ${commandText(execution)}`
}

function endText({ exitCode, signal }: Run | Execution): string {
  if (signal !== undefined) return `by ${signal}`
  return exitCode === undefined ? 'by becoming the next one' : `with ${exitCode}`
}
