import type { Command } from 'commander'
import { operationJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { operationTable } from '../render/operations.ts'

export function register(program: Command): void {
  define(program, {
    name: 'operations',
    group: 'look',
    summary: 'list what was done, and what can be undone',
    description:
      'Lists the operations of the timeline, newest first: runs, rollbacks, reverts, deletions, tags. What retention removed ' +
      'by itself, and everything else that happened, is in `savepoint events`. `savepoint undo` takes back the newest that can be undone.',
    examples: [
      ['operations', 'all of them'],
      ['operations -n 5', 'the last five'],
    ],
  })
    .option('-n, --limit <n>', 'at most this many', atMost)
    .action(
      handle<{ limit?: number }>(async (context, { options }) => {
        const operations = (await context.list()).operations().toReversed().slice(0, options.limit)
        if (context.options.json) return context.json(operations.map(operationJson))
        if (context.options.quiet) return context.lines(operations.map(({ id }) => id))
        context.output.write(operationTable(operations, context.now, context.style))
      }),
    )
}
