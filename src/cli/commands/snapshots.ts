import type { Command } from 'commander'
import { snapshotJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { atMost } from '../number-option.ts'
import { noSnapshotsText } from '../render/no-snapshots.ts'
import { snapshotTable } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'snapshots',
    group: 'look',
    summary: 'list snapshots, newest first',
    description:
      'Lists the snapshots of the timeline, newest first. SIZE is what each added to the store. RUN narrows the list to ' +
      'one run. PARTIAL marks a snapshot that could not capture everything: `savepoint show` names what is missing.',
    usage: '[RUN]',
    examples: [
      ['snapshots', 'all of them'],
      ['snapshots run_k3m9x2ab', 'those of one run'],
      ['snapshots -q | head -1', 'only ids: the newest'],
      ['snapshots --json', 'for programs'],
    ],
  })
    .argument('[run]', 'only those of this run')
    .option('-n, --limit <n>', 'at most this many', atMost)
    .action(
      handle<{ limit?: number }>(async (context, { words: [run], options }) => {
        const savepoint = await context.list()
        const wanted = new Set(savepoint.snapshots({ run }).map(({ id }) => id))
        const nodes = savepoint
          .log()
          .filter(({ snapshot }) => wanted.has(snapshot.id))
          .sort((a, b) => b.snapshot.seq - a.snapshot.seq)
          .slice(0, options.limit)
        if (context.options.json) {
          return context.json(nodes.map(node => snapshotJson(node.snapshot, { tags: node.tags, head: node.isHead })))
        }
        if (context.options.quiet) return context.lines(nodes.map(({ snapshot }) => snapshot.id))
        if (nodes.length === 0) return context.line(noSnapshotsText(context, savepoint, run))
        context.output.write(snapshotTable(nodes, context.now, context.style))
      }),
    )
}
