import type { Command } from 'commander'
import { formatAge, plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { pruneJson } from '../json-maintain.ts'
import { notNegative } from '../number-option.ts'
import { titleOf } from '../render/snapshot.ts'
import { renderTable } from '../table.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'prune',
    group: 'maintain',
    summary: 'delete old automatic snapshots by rule',
    description:
      'Deletes the snapshots that the retention rules do not keep, or, with --keep, all but the newest N. Manual, ' +
      'labelled and tagged ones, the first one, HEAD and branch points are always kept. RUN narrows it to one run. ' +
      'It can be undone for 7 days.',
    usage: '[RUN] [--keep N] [--dry-run]',
    examples: [
      ['prune --dry-run', 'what would go, and by which rule'],
      ['prune --keep 5', 'only the newest five (and what is always kept)'],
    ],
    cancellable: true,
  })
    .argument('[run]', 'only snapshots of this run')
    .option('--keep <n>', 'how many to keep', notNegative)
    .option('--dry-run', 'only show what would be deleted')
    .action(
      handle<{ keep?: number; dryRun?: boolean }>(async (context, { words: [run], options }) => {
        const { style } = context
        const result = await (await context.open({ makeRoom: !options.dryRun })).prune({ ...options, run })
        if (context.options.json) return context.json(pruneJson(result))
        const gone = result.decisions.filter(({ keep }) => !keep)
        if (context.options.quiet) return context.lines(gone.map(({ snapshot }) => snapshot.id))
        const kept = `${plural('snapshot', result.decisions.length - gone.length)} kept`
        if (gone.length === 0) return context.line(`Nothing to delete: ${kept}`)
        const rows = gone.map(({ snapshot, rule }) => [
          snapshot.id,
          snapshot.type,
          formatAge(context.now - snapshot.createdAt),
          showText(rule),
          titleOf(snapshot, style),
        ])
        const columns = [
          { title: 'ID' },
          { title: 'TYPE' },
          { title: 'CREATED' },
          { title: 'RULE' },
          { title: 'LABEL' },
        ]
        context.output.write(renderTable(columns, rows, style))
        context.line(`${result.dryRun ? 'Would delete' : 'Deleted'} ${plural('snapshot', gone.length)}, ${kept}`)
        context.line(result.dryRun ? 'Nothing was changed (dry run)' : `To undo: ${style.bold(style.command('undo'))}`)
      }),
    )
}
