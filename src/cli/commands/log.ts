import type { Command } from 'commander'
import { logNodeJson, operationJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { noSnapshotsText } from '../render/no-snapshots.ts'
import { operationTable } from '../render/operations.ts'
import { logText } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'log',
    group: 'look',
    summary: 'draw the tree of snapshots',
    description:
      'Draws the timeline as a tree, newest first, as `git log --graph` does. HEAD is the snapshot that the live files ' +
      'descend from. The marks count what changed against the parent: +added ~modified -deleted. Trees that have no ' +
      'beginning in common (an import begins one) stand an empty line apart.',
    usage: '[-n N] [--operations]',
    examples: [
      ['log', 'the whole tree'],
      ['log -n 20', 'its 20 newest lines'],
      ['log --operations', 'what was done to the timeline, and what can be undone'],
    ],
  })
    .option('-n, --limit <n>', 'at most this many snapshots', atMost)
    .option('--operations', 'list the operations instead')
    .action(
      handle<{ limit?: number; operations?: boolean }>(async (context, { options }) => {
        const savepoint = await context.list()
        if (options.operations) {
          const operations = savepoint.operations().toReversed().slice(0, options.limit)
          if (context.options.json) return context.json(operations.map(operationJson))
          if (context.options.quiet) return context.lines(operations.map(({ id }) => id))
          return context.paged(output => output.write(operationTable(operations, context.now, context.style)))
        }
        const nodes = savepoint.log()
        const newest = nodes.toSorted((a, b) => b.snapshot.seq - a.snapshot.seq).slice(0, options.limit)
        if (context.options.json) return context.json(newest.map(logNodeJson))
        if (context.options.quiet) return context.lines(newest.map(({ snapshot }) => snapshot.id))
        if (nodes.length === 0) return context.line(noSnapshotsText(context, savepoint))
        await context.paged(output => output.write(logText(nodes, context.now, context.style, options.limit)))
      }),
    )
}
