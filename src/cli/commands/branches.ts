import type { Command } from 'commander'
import { logNodeJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { noSnapshotsText } from '../render/no-snapshots.ts'
import { snapshotTable } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'branches',
    group: 'organise',
    summary: 'list the ends of the tree',
    description:
      'Lists the snapshots that have no child: the ends of the branches that rollbacks leave behind. Nothing on them is ' +
      'lost; `savepoint rollback` goes to any of them.',
    examples: [['branches', 'newest first']],
  }).action(
    handle(async context => {
      const savepoint = await context.list()
      const nodes = savepoint.branches().toSorted((a, b) => b.snapshot.seq - a.snapshot.seq)
      if (context.options.json) return context.json(nodes.map(logNodeJson))
      if (context.options.quiet) return context.lines(nodes.map(({ snapshot }) => snapshot.id))
      if (nodes.length === 0) return context.line(noSnapshotsText(context, savepoint))
      context.output.write(snapshotTable(nodes, context.now, context.style))
    }),
  )
}
