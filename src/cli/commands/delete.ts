import type { Command } from 'commander'
import { operationJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'delete',
    group: 'organise',
    summary: 'delete snapshots; files stay as they are',
    description:
      'Deletes snapshots from the timeline; the live files are not touched. Deleted snapshots can be brought back with ' +
      '`savepoint undo` for 7 days; after that `savepoint gc` frees their space. HEAD, which the live files descend from, ' +
      'stays, unless the directory is gone (name that with -t).',
    usage: 'SNAP…',
    examples: [
      ['delete snap_k3m9x2ab', 'one snapshot'],
      ['delete old-1 old-2', 'several, by label or tag'],
    ],
    cancellable: true,
  })
    .argument('<snapshots...>', 'ids, prefixes, tags or labels')
    .action(
      handle(async (context, { words }) => {
        const operation = await (await context.open({ makeRoom: true })).delete(words)
        if (context.options.json) return context.json(operationJson(operation))
        if (context.options.quiet) return
        context.line(`Done: ${showText(operation.summary)}; kept for 7 days`)
        context.line(`To undo: ${context.style.bold(context.style.wayBack('undo', []))}`)
      }),
    )
}
