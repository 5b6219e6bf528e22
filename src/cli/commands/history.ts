import type { Command } from 'commander'
import type { HistoryResult } from '../../index.ts'
import { formatAge, formatBytes } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { historyJson } from '../json.ts'
import { titleOf } from '../render/snapshot.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { shellWord } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'history',
    group: 'look',
    summary: 'list the versions of a file',
    description:
      'Lists the snapshots in which a path was new, modified or deleted, newest first. Snapshots that have it unchanged ' +
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
        const history = await (await context.open()).history(path!)
        if (context.options.json) return context.json(historyJson({ ...history, versions: newestFirst(history) }))
        context.output.write(historyText(history, path!, options.all === true, context.now, context.style))
      }),
    )
}

const newestFirst = ({ versions }: HistoryResult) => versions.toSorted((a, b) => b.snapshot.seq - a.snapshot.seq)

const paints = { new: 'green', modified: 'yellow', deleted: 'red', unchanged: 'dim', unknown: 'magenta' } as const

export function historyText(history: HistoryResult, typed: string, all: boolean, now: number, style: Style): string {
  const versions = newestFirst(history).filter(({ status }) => all || status !== 'unchanged')
  const rows = versions.map(({ snapshot, status, size }) => [
    snapshot.id,
    style[paints[status]](status),
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
  const present = history.currentSize === undefined ? 'does not exist now' : `${formatBytes(history.currentSize)} now`
  const word = shellWord(typed)
  const table = rows.length > 0 ? renderTable(columns, rows, style) : 'No snapshot has a version of it\n'
  const next = rows.length > 0 ? `To bring one back: savepoint revert ${word} --from SNAPSHOT\n` : ''
  return `${table}${style.path(history.path)}: ${present}\n${next}`
}
