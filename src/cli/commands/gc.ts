import type { Command } from 'commander'
import { gcJson } from '../../api/json-maintain.ts'
import type { GcResult } from '../../index.ts'
import { formatBytes, formatCount, plural } from '../../model/format.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'

export function register(program: Command): void {
  define(program, {
    name: 'gc',
    group: 'maintain',
    summary: 'free the space of long deleted snapshots',
    description:
      'Removes from the store what no snapshot needs any more. Snapshots deleted more than 7 days ago are forgotten, and ' +
      'the traces of runs that ended more than 30 days ago and have no snapshot left. This cannot be undone. It concerns ' +
      'all protected directories, and can be said anywhere. What a filesystem ' +
      'does not remove now is named, and left to the next one (exit code 3).',
    examples: [['gc', 'free what can be freed']],
    cancellable: true,
  }).action(
    handle(async context => {
      const result = await (await context.open({ makeRoom: true, wholeStore: true })).gc()
      if (context.options.json) context.json(gcJson(result))
      else if (!context.options.quiet) showResult(context, result)
      if (result.stillKept === 0) return 0
      // Otherwise each was named, with the reason.
      if (context.options.quiet) context.notice(stillKeptText(result.stillKept), true)
      return 3
    }),
  )
}

const stillKeptText = (count: number): string =>
  `${formatCount(count)} of what a filesystem or archive keeps, and nothing needs, could not be removed, or may be left; \`savepoint gc\` says why`

function showResult(context: Context, result: GcResult): void {
  const store = `the store holds ${formatBytes(result.storeBytes)}`
  const traces = result.forgottenTraces
  if (traces > 0) context.line(`Removed the traces of ${plural('run', traces)} older than 30 days without a snapshot`)
  const kept = Map.groupBy(result.removedKept, backend => (backend === 'archive' ? backend : `${backend} snapshot`))
  for (const [what, { length }] of kept) context.line(`Removed ${plural(what, length)} that nothing needs`)
  if (result.removedObjects === 0 && result.forgottenSnapshots === 0 && result.freedBytes === 0) {
    context.line(kept.size > 0 ? `Nothing else to free: ${store}` : `Nothing to free: ${store}`)
    return
  }
  const forgotten =
    result.forgottenSnapshots > 0 ? `, ${plural('deleted snapshot', result.forgottenSnapshots)} forgotten` : ''
  context.line(
    `Freed ${formatBytes(result.freedBytes)}: ${plural('object', result.removedObjects)} removed${forgotten}; ${store}`,
  )
  context.line('This cannot be undone')
}
