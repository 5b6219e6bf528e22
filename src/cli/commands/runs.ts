import type { Command } from 'commander'
import { listedRunJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { runTable } from '../render/operations.ts'

export function register(program: Command): void {
  define(program, {
    name: 'runs',
    group: 'look',
    summary: 'list the commands that ran under protection',
    description:
      'Lists the runs of the timeline, newest first, and which of them were undone or taken back. `savepoint rollback RUN` takes ' +
      'back what one of them changed.',
    examples: [
      ['runs', 'all of them'],
      ['rollback run_k3m9x2ab', 'take back what one run changed, and only that'],
    ],
  })
    .option('-n, --limit <n>', 'at most this many', atMost)
    .action(
      handle<{ limit?: number }>(async (context, { options }) => {
        const runs = (await context.list())
          .runs()
          .toSorted((a, b) => b.startedAt - a.startedAt)
          .slice(0, options.limit)
        if (context.options.json) return context.json(runs.map(listedRunJson))
        if (context.options.quiet) return context.lines(runs.map(({ id }) => id))
        context.output.write(runTable(runs, context.now, context.style))
      }),
    )
}
