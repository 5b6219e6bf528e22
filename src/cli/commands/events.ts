import type { Command } from 'commander'
import { eventJson } from '../../api/json-trace.ts'
import type { ListedEvent } from '../../index.ts'
import { formatAge, formatBytes, plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { commandText } from '../render/trace.ts'
import type { Style } from '../style.ts'

const KIND_CHARS = 9
const AGE_CHARS = 14

export function register(program: Command): void {
  define(program, {
    name: 'events',
    group: 'look',
    summary: 'list what happened to files, with the snapshots',
    description:
      'Lists files that were created, modified, deleted, renamed or restored, newest first, with the command that did it ' +
      'where that is known, and between them the snapshots. What was done outside of a run is noted when a snapshot ' +
      'finds it. `docs/format.md` says how to ask the same in SQL.',
    usage: '[--run RUN] [-n N]',
    examples: [
      ['events', 'the last hundred'],
      ['events --run run_k3m9x2ab -n 20', 'the last that one run did'],
    ],
  })
    .option('--run <run>', 'only of this run')
    .option('-n, --limit <n>', 'at most this many (default: 100)', atMost)
    .action(
      handle<{ run?: string; limit?: number }>(async (context, { options }) => {
        const { events } = (await context.look({ upToDate: true })).events({ run: options.run, limit: options.limit })
        if (context.options.json) return context.json(events.map(eventJson))
        if (context.options.quiet) return context.lines(events.map(idOf))
        await context.paged(output => {
          if (events.length === 0) output.write('No events are known\n')
          for (const event of events) output.write(`${eventLine(event, context.now, context.style)}\n`)
        })
      }),
    )
}

const idOf = (listed: ListedEvent): string =>
  listed.type === 'file' ? String(listed.event.id) : listed.events.snapshot

function eventLine(listed: ListedEvent, now: number, style: Style): string {
  if (listed.type === 'snapshot') {
    const { snapshot, origin, files, unlisted } = listed.events
    const age = listed.snapshot ? formatAge(now - listed.snapshot.createdAt) : 'forgotten'
    const more = unlisted > 0 ? `, ${unlisted} of them not listed` : ''
    return `${style.dim(age.padEnd(AGE_CHARS))} ${style.cyan('snapshot'.padEnd(KIND_CHARS))} ${style.bold(snapshot)} ${origin}, ${plural('changed path', files)}${more}`
  }
  const { event, execution } = listed
  const path = event.path === undefined ? 'from outside' : style.path(event.path)
  const to = event.to === undefined ? '' : ` → ${style.path(event.to)}`
  const size = event.size === undefined ? '' : ` ${style.dim(formatBytes(event.size))}`
  const by = execution ? style.dim(` by ${commandText(execution)}`) : ''
  return `${style.dim(formatAge(now - event.at).padEnd(AGE_CHARS))} ${style.yellow(event.kind.padEnd(KIND_CHARS))} ${path}${event.directory ? '/' : ''}${to}${size}${by}`
}
