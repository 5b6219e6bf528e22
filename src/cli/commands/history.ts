import type { Command } from 'commander'
import { historyJson } from '../../api/json.ts'
import type { HistoryResult } from '../../index.ts'
import { formatAge, formatBytes } from '../../model/format.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { define, handle } from '../define.ts'
import { keptCopyText } from '../render/kept-copy.ts'
import { titleOf } from '../render/snapshot.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'

export function register(program: Command): void {
  define(program, {
    name: 'history',
    group: 'look',
    summary: 'list the versions of a file',
    description:
      'Lists the snapshots in which a path was new, modified or deleted, newest first; of a directory, those in which ' +
      'anything in it was. Snapshots that have it unchanged ' +
      'are left out unless --all is given.',
    usage: 'PATH [--all]',
    examples: [
      ['history src/app.ts', 'its versions'],
      ['revert src/app.ts --from snap_k3m9x2ab', 'bring one of them back'],
      ['show snap_k3m9x2ab src/app.ts', 'read one of them'],
    ],
  })
    .argument('<path>', 'a file or directory')
    .option('--all', 'also the snapshots that have it unchanged')
    .action(
      handle<{ all?: boolean }>(async (context, { words: [path], options }) => {
        const history = await (await context.look()).history(path!)
        if (context.options.json) return context.json(historyJson({ ...history, versions: newestFirst(history) }))
        const versions = newestFirst(history).filter(({ status }) => options.all || status !== 'unchanged')
        if (context.options.quiet) return context.lines(versions.map(({ snapshot }) => snapshot.id))
        context.output.write(
          historyText({ ...history, versions }, context.operand(history.path), context.now, context.style),
        )
        if (history.movedTo !== undefined) {
          const command = context.style.command(`history ${wordOf(context.operand(history.movedTo))}`)
          context.line(
            `A run moved what was there to ${context.style.path(history.movedTo)}, and snapshots have it there: ${command}`,
          )
        }
      }),
    )
}

const newestFirst = ({ versions }: HistoryResult) => versions.toSorted((a, b) => b.snapshot.seq - a.snapshot.seq)

const paints = { new: 'green', modified: 'yellow', deleted: 'red', unchanged: 'dim', unknown: 'magenta' } as const

const wordOf = (operand: string): string => quoteWord(operand.startsWith('-') ? `./${operand}` : operand)

/** What was purged or never captured cannot be brought back, so that must not be hinted at, unless a filesystem keeps it. */
function nextStep({ path, versions, kept, currentSize }: HistoryResult, operand: string, style: Style): string {
  const elsewhere = kept ? `${keptCopyText(path, kept, currentSize === undefined, style)}\n` : ''
  const isCaptured = versions.some(({ status }) => status !== 'unknown' && status !== 'deleted')
  if (isCaptured)
    return `To bring one back: ${style.command(`revert ${wordOf(operand)} --from SNAPSHOT`)}\n${elsewhere}`
  return elsewhere || 'No snapshot can bring it back\n'
}

/** `history`: as it is to be shown, newest first. `operand`: the path as it can be typed here. */
function historyText(history: HistoryResult, operand: string, now: number, style: Style): string {
  const rows = history.versions.map(({ snapshot, status, reason, size }) => [
    snapshot.id,
    style[paints[status]](reason ?? status),
    size === undefined ? '' : formatBytes(size),
    formatAge(now - snapshot.createdAt),
    titleOf(snapshot, style),
  ])
  const columns = [
    { title: 'SNAPSHOT' },
    { title: 'STATUS' },
    { title: 'SIZE', align: 'right' as const },
    { title: 'CREATED' },
    { title: 'LABEL' },
  ]
  const absent = history.isHidden ? 'a directory above it does not let you look' : 'does not exist now'
  const size = history.isDirectory ? 'a directory' : formatBytes(history.currentSize ?? 0)
  const present = history.currentSize === undefined ? absent : `${size} now`
  const table = rows.length > 0 ? renderTable(columns, rows, style) : 'No snapshot has a version of it\n'
  return `${table}${style.path(history.path) || '.'}: ${present}\n${rows.length > 0 || history.kept ? nextStep(history, operand, style) : ''}`
}
