import type { Command } from 'commander'
import { pruneJson } from '../../api/json-maintain.ts'
import type { PruneResult } from '../../index.ts'
import { formatAge, formatCount, plural } from '../../model/format.ts'
import { type Snapshot, UNREAD_ROOT } from '../../model/snapshot.ts'
import { define, handle } from '../define.ts'
import { notNegative } from '../number-option.ts'
import { titleOf } from '../render/snapshot.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { showText } from '../text.ts'

/** Kept by snapshots.retention.delete_initial being false. */
const initialRules: ReadonlySet<string> = new Set(['pre-run', 'root'])
const kindNames: Record<string, string> = {
  root: 'the first of all',
  leaf: 'at the end of a branch',
  'branch point': 'where branches part',
}

/** "Of these, 47 are pinned: 45 pre-run, 1 tagged, 1 HEAD", and what lets them go; '' when none is. */
function pinnedText({ decisions }: PruneResult): string {
  const kinds = Map.groupBy(
    decisions.filter(({ isPinned }) => isPinned),
    ({ rule }) => rule,
  )
  if (kinds.size === 0) return ''
  const counts = [...kinds].sort(([, a], [, b]) => b.length - a.length)
  const parts = counts.map(([rule, { length }]) => `${formatCount(length)} ${kindNames[rule] ?? rule}`)
  const total = counts.reduce((sum, [, { length }]) => sum + length, 0)
  const text = `Of these, ${formatCount(total)} ${total === 1 ? 'is' : 'are'} pinned: ${parts.join(', ')}\n`
  const hasInitial = counts.some(([rule]) => initialRules.has(rule))
  return hasInitial
    ? `${text}To let pre-run ones and the first one go, too: snapshots.retention.delete_initial: true\n`
    : text
}

/** "Kept by rule: 10 ring of auto_max (10)", for those that no pin keeps; '' when there are none. */
function keptByRuleText({ decisions }: PruneResult): string {
  const kept = decisions.filter(({ keep, isPinned }) => keep && !isPinned)
  const parts = [...Map.groupBy(kept, ({ rule }) => rule)].map(([rule, { length }]) => `${formatCount(length)} ${rule}`)
  return parts.length === 0 ? '' : `Kept by rule: ${parts.join(', ')}\n`
}

/** What goes from where it is kept beside the store; '' when nothing does. */
function leftToStoreText({ leftToStore, dryRun }: PruneResult): string {
  const verb = dryRun ? 'Would leave' : 'Left'
  const unless = ({ root }: Snapshot) => (root === UNREAD_ROOT ? ', unless a part of it cannot be read' : '')
  return leftToStore
    .map(
      ({ snapshot, rule }) =>
        `${verb} ${snapshot.id} to the store alone (was: ${snapshot.backend}): ${rule}${unless(snapshot)}\n`,
    )
    .join('')
}

/** Of a dry run all of them: why one stays is worth as much. */
function decisionTable({ decisions, dryRun }: PruneResult, now: number, style: Style): string {
  const shown = dryRun ? decisions : decisions.filter(({ keep }) => !keep)
  const rows = shown.map(({ snapshot, rule, keep }) => [
    snapshot.id,
    snapshot.type,
    formatAge(now - snapshot.createdAt),
    ...(dryRun ? [keep ? 'keep' : 'delete'] : []),
    showText(kindNames[rule] ?? rule),
    titleOf(snapshot, style),
  ])
  const titles = ['ID', 'TYPE', 'CREATED', ...(dryRun ? ['DECISION'] : []), 'RULE', 'LABEL']
  return renderTable(
    titles.map(title => ({ title })),
    rows,
    style,
  )
}

export function register(program: Command): void {
  define(program, {
    name: 'prune',
    group: 'maintain',
    summary: 'delete old automatic snapshots by rule',
    description:
      'Deletes the snapshots that the retention rules do not keep, or, with --keep, all but the newest N of those that ' +
      'are not pinned. Pinned are HEAD, manual, imported, labelled and tagged ones, ends of branches and branch points, ' +
      'safety snapshots that an operation can be undone with or that are younger than 7 days, kept ones with ' +
      "somebody else's files until their run cannot be undone any more and for 7 days at least, the state before a run that " +
      'has no end yet, and, unless ' +
      'snapshots.retention.delete_initial is true, the pre-run snapshot of every run and the first one of all. ' +
      'RUN narrows it to one run. It can be undone for 7 days.',
    usage: '[RUN] [--keep N] [--dry-run]',
    examples: [
      ['prune --dry-run', 'what would go or stay, each by which rule'],
      ['prune --keep 5', 'only the newest five (and what is pinned)'],
    ],
    cancellable: true,
  })
    .argument('[run]', 'only snapshots of this run')
    .option('--keep <n>', 'how many to keep of those that are not pinned', notNegative)
    .option('--dry-run', 'only show what would be deleted')
    .action(
      handle<{ keep?: number; dryRun?: boolean }>(async (context, { words: [run], options }) => {
        const { keep, dryRun } = options
        // Whoever reads what filesystems keep also removes what is beyond native_max.
        const savepoint = await context.open({ makeRoom: !dryRun, leaveUnread: dryRun })
        // Only from here on it knows of a live run, and of the directory that this is asked in.
        const { style } = context
        const result = await savepoint.prune({ keep, dryRun, run })
        if (context.options.json) return context.json(pruneJson(result))
        const gone = result.decisions.filter(({ keep }) => !keep)
        if (context.options.quiet) return context.lines(gone.map(({ snapshot }) => snapshot.id))
        const reasons = `${pinnedText(result)}${dryRun ? keptByRuleText(result) : ''}${leftToStoreText(result)}`
        const kept = `${plural('snapshot', result.decisions.length - gone.length)} kept`
        if (gone.length === 0) {
          if (dryRun) context.output.write(decisionTable(result, context.now, style))
          context.line(`Nothing to delete: ${kept}`)
          context.output.write(reasons)
          return
        }
        context.output.write(decisionTable(result, context.now, style))
        context.line(`${result.dryRun ? 'Would delete' : 'Deleted'} ${plural('snapshot', gone.length)}, ${kept}`)
        context.output.write(reasons)
        context.line(
          result.dryRun ? 'Nothing was changed (dry run)' : `To undo: ${style.bold(style.wayBack('undo', []))}`,
        )
      }),
    )
}
