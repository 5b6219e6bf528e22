import type { Command } from 'commander'
import { eventJson, eventPageJson } from '../../api/json-events.ts'
import type { EventsOptions, LogEvent } from '../../index.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { eventLine } from '../render/events.ts'

/** Shown before what `--follow` tells. */
const FOLLOWED = 10

type Options = Omit<EventsOptions, 'kind'> & { kind?: string[]; follow?: boolean }

export function register(program: Command): void {
  define(program, {
    name: 'events',
    group: 'look',
    summary: 'list everything that happened, in one order',
    description:
      'Lists what happened in this directory, newest first: files that were created, modified, deleted, renamed or restored, with ' +
      'the command that did it where that is known; snapshots that were taken or that retention removed; operations; runs that started and ended; ' +
      'and commands, if they are asked for. The order is that in which it was recorded, whatever the clock said; what was done outside ' +
      'of a run is noted when a snapshot finds it. `docs/format.md` says how to ask the same in SQL.',
    usage: '[--kind KIND,…] [--run RUN] [--since WHEN] [-n N] [--cursor CURSOR] [--reverse] [--follow]',
    examples: [
      ['events', 'the last hundred'],
      ['events --kind operation,run --since 1d', 'what was done since yesterday'],
      ['events --run run_k3m9x2ab --kind all -n 20', 'the last that one run did, with its commands'],
      ['events --follow', 'watch what happens'],
    ],
  })
    .option(
      '--kind <kinds>',
      'file, snapshot, operation, run, command or all; several with commas (default: all but command)',
      (text: string, before: string[] = []) => [...before, ...text.split(',').map(kind => kind.trim())],
    )
    .option('--run <run>', 'only of this run')
    .option('--since <when>', 'a while (90s, 10m, 2h, 1d), a time (2026-01-31T14:30), a snapshot or a run')
    .option('-n, --limit <n>', 'at most this many (default: 100)', atMost)
    .option('--cursor <cursor>', 'go on from there: as the page before, or an event in --json, names it')
    .option('--reverse', 'oldest first')
    .option('-f, --follow', 'go on with what happens from now on, oldest first')
    .action(
      handle<Options>(async (context, { options: given }) => {
        const { run, since, limit, cursor, reverse } = given
        const options: EventsOptions = { kind: given.kind as EventsOptions['kind'], run, since, limit, cursor, reverse }
        if (given.follow) return followEvents(context, options)
        const page = (await context.list({ upToDate: true })).events(options)
        if (context.options.json) return context.json(eventPageJson(page))
        if (context.options.quiet) return context.lines(page.events.map(({ cursor }) => cursor))
        await context.paged(output => {
          if (page.events.length === 0) output.write('No events are known\n')
          for (const event of page.events) output.write(eventLine(event, context.now, context.style))
          if (page.next !== undefined)
            output.write(context.style.dim(`More: ${context.style.command(again(options, page.next))}\n`))
        })
      }),
    )
}

/** The command line of the next page. */
function again({ kind, run, since, limit, reverse }: EventsOptions, next: string): string {
  const words = [
    ...(kind ? ['--kind', kind.join(',')] : []),
    ...(run === undefined ? [] : ['--run', quoteWord(run)]),
    ...(since === undefined ? [] : ['--since', quoteWord(since)]),
    ...(limit === undefined ? [] : ['-n', String(limit)]),
    ...(reverse ? ['--reverse'] : []),
  ]
  return ['events', ...words, '--cursor', next].join(' ')
}

/** First the newest that there are, or all after the cursor; then what comes. */
async function followEvents(context: Context, options: EventsOptions): Promise<void> {
  const savepoint = await context.list()
  const show = (event: LogEvent) => {
    if (context.options.json) context.output.write(`${JSON.stringify(eventJson(event))}\n`)
    else if (context.options.quiet) context.lines([event.cursor])
    else context.output.write(eventLine(event, Date.now(), context.style))
  }
  const { kind, run, cursor, since } = options
  // Taken first: what comes from here on is told, whether it is of the kinds that are shown now or not.
  const newest = savepoint.events({ kind: ['all'], limit: 1 }).events[0]?.cursor
  const limit = options.limit ?? (since === undefined ? FOLLOWED : Number.MAX_SAFE_INTEGER)
  const shown = cursor === undefined ? savepoint.events({ kind, run, since, limit }).events : []
  for (const event of shown.toReversed()) show(event)
  const { signal, abort } = stopper()
  const id = run === undefined ? undefined : savepoint.events({ run, limit: 1 }).events[0]?.run
  await savepoint.subscribe(
    told => {
      if (context.output.closed) return abort()
      if ('action' in told && (run === undefined || told.run === id)) show(told)
    },
    { signal, kind, cursor: cursor ?? shown[0]?.cursor ?? newest },
  )
}

function stopper(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}
