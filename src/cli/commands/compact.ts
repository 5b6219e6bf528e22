import type { Command } from 'commander'
import { snapshotJson } from '../../api/json.ts'
import { placeOf } from '../../api/snapshot-place.ts'
import { plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { snapshotLine } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'compact',
    group: 'organise',
    summary: 'join several snapshots into one',
    description:
      'Replaces the named snapshots by one that has the state of the newest of them. States in between can no longer be ' +
      'chosen, unless you undo it within 7 days.',
    usage: 'SNAP SNAP… [-m LABEL]',
    examples: [['compact snap_k3m9x2ab snap_p7q2c4de -m "parser done"', 'two into one']],
    cancellable: true,
  })
    .argument('<snapshots...>', 'ids, prefixes, tags or labels')
    .option('-m, --label <text>', 'what the joined state is')
    .action(
      handle<{ label?: string }>(async (context, { words, options }) => {
        const savepoint = await context.open({ makeRoom: true })
        const { snapshot } = await savepoint.compact(words, { label: options.label })
        if (context.options.json) return context.json(snapshotJson(snapshot, placeOf(savepoint, snapshot)))
        if (context.options.quiet) return context.line(snapshot.id)
        context.line(`Joined ${plural('snapshot', words.length)} into ${snapshotLine(snapshot, context.style)}`)
        context.line(`To undo: ${context.style.bold(context.style.wayBack('undo', []))}`)
      }),
    )
}
