import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { purgedTracesJson, purgeJson } from '../../api/json-maintain.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { PurgedTraces, PurgeResult } from '../../index.ts'
import { formatBytes, plural } from '../../model/format.ts'
import { lostText } from '../../model/only-there.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { canAsk, confirm } from '../confirm.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { showText } from '../text.ts'

const listed = 10

export function register(program: Command): void {
  define(program, {
    name: 'purge',
    group: 'maintain',
    summary: 'remove a path from all history, for good',
    description:
      'Removes every captured version of PATH from every snapshot and from the store: for secrets that should not have ' +
      'been captured. In traces, events of it are removed, and arguments of commands that name it are hidden: they may ' +
      'have its content. Snapshots that a filesystem keeps of the directory go as a whole, with what ignore rules exclude and ' +
      'what could not be captured (too large, unreadable), which is named; the store has the rest of them. --text hides a text in all recorded command lines instead. The live file stays. THIS CANNOT ' +
      'BE UNDONE. On a terminal it asks first; elsewhere give --yes.',
    usage: 'PATH | --text TEXT [--yes]',
    examples: [
      ['purge .env.production', 'asks, then removes'],
      ['purge secrets --yes', 'a directory, without asking'],
      ['purge --text - --yes < token', 'a secret that was given on a command line'],
    ],
    cancellable: true,
  })
    .argument('[path]', 'a file or directory')
    .option('--text <text>', 'a text of recorded command lines (-: from standard input)')
    .option('-y, --yes', 'do not ask')
    .action(
      handle<{ yes?: boolean; text?: string }>(async (context, { words: [path], options }) => {
        if ((path === undefined) === (options.text === undefined))
          throw new SavepointError('usage', 'Cannot purge: name a path or give --text, one of them')
        const savepoint = await context.open({ makeRoom: true })
        // Inside of a run it is refused, whatever the answer.
        const asks = !options.yes && savepoint.ownRun() === undefined
        if (options.text !== undefined) {
          if (asks) await askFirst(context, '--text …', 'Hide that text in all recorded command lines?')
          const purged = await savepoint.purgeText(options.text === '-' ? textFromInput() : options.text)
          if (context.options.json) return context.json(purgedTracesJson(purged))
          if (!context.options.quiet) context.line(`Hidden in ${plural('command line', purged.commands)}`)
          return 0
        }
        if (asks) {
          await savepoint.history(path!).catch(error => {
            // What is not ours is no question; what no snapshot has may still stand in a trace.
            if ((error as SavepointError).code !== 'path.unknown') throw error
          })
          const left = savepoint.leftByPurge(path!)
          const [kept, lost] = [besideText(left, 'keeps'), lostText(left)]
          const also = kept === '' ? '' : ` That also removes ${kept}.`
          const more = lost === '' ? also : `${also} The store does not have ${lost}.`
          await askFirst(context, path!, `Remove every version of ${showText(path!)} from all snapshots?${more}`)
        }
        const result = await savepoint.purge(path!)
        const notSure = result.elsewhere.length + result.unread.length + result.mayBeLeft.length
        const exitCode = notSure > 0 ? 3 : 0
        if (context.options.json) context.json(purgeJson(result))
        else showResult(context, result)
        // Otherwise it was said on the way.
        if (context.options.quiet && result.mayBeLeft.length > 0) context.notice(mayBeLeftText(result.mayBeLeft), true)
        return exitCode
      }),
    )
}

function showResult(context: Context, result: PurgeResult): void {
  const { style } = context
  const versions = `${plural('version', result.versions)} in ${plural('snapshot', result.snapshots)}`
  const notRemoved = new Set([...result.goneBefore, ...result.mayBeLeft.map(({ snapshot }) => snapshot)])
  const removed = result.leftToStore.filter(({ snapshot }) => !notRemoved.has(snapshot))
  const kept = besideText(removed, 'kept')
  if (!context.options.quiet) {
    context.line(
      `Purged ${style.path(result.path)}: ${versions}, ${formatBytes(result.freedBytes)} freed${tracesText(result)}`,
    )
    if (kept !== '') context.line(`Removed, too: ${kept}`)
    if (result.goneBefore.length > 0) context.line(goneBeforeText(result.goneBefore))
  }
  const lost = lostText(removed)
  if (lost !== '') context.line(style.yellow(`Gone with that, as the store does not have it: ${lost}`))
  if (result.elsewhere.length > 0)
    context.line(style.yellow('The same is still kept under other paths; purge them too if it is secret:'))
  for (const { snapshot, path, target } of result.elsewhere.slice(0, listed))
    context.line(`  ${style.path(path)} (${snapshot}${target === undefined ? '' : ` of ${showText(target)}`})`)
  if (result.elsewhere.length > listed)
    context.line(`  … and ${result.elsewhere.length - listed} more (--json lists all)`)
  if (result.unread.length > 0) context.line(style.yellow(unreadText(result.unread)))
}

function goneBeforeText(ids: readonly string[]): string {
  const more = ids.length > listed ? ` and ${ids.length - listed} more` : ''
  return `Gone already, removed by somebody else: what was kept of ${ids.slice(0, listed).join(', ')}${more} beside the store`
}

function mayBeLeftText(left: PurgeResult['mayBeLeft']): string {
  const more = left.length > listed ? ` and ${left.length - listed} more` : ''
  return `what a filesystem keeps may still have it: ${left
    .map(({ mayBe }) => mayBe)
    .slice(0, listed)
    .join(', ')}${more}; it stays until somebody deletes it there`
}

function unreadText(unread: PurgeResult['unread']): string {
  const targets = [...new Set(unread.map(({ target }) => showText(target)))].join(', ')
  return `Not checked, perhaps the same is there: ${plural('snapshot', unread.length)} that only a filesystem keeps, of ${targets}`
}

/** "2 snapshots that zfs keeps and 1 archive, …"; '' without any. What was never captured is only there: that must be known. */
function besideText(kept: PurgeResult['leftToStore'], keeps: 'keeps' | 'kept'): string {
  const byBackend = Map.groupBy(kept, ({ backend }) => backend)
  const parts = [...byBackend].map(([backend, { length }]) =>
    backend === 'archive' ? plural('archive', length) : `${plural('snapshot', length)} that ${backend} ${keeps}`,
  )
  const isMore = [...byBackend.keys()].some(backend => backend !== 'archive')
  const more = kept.some(({ lostCount }) => lostCount > 0) ? ' and what could not be captured' : ''
  const rest = isMore ? `, with what ignore rules exclude${more}; the store has the rest of them` : ''
  return `${parts.join(' and ')}${rest}`
}

const tracesText = ({ commands, events }: PurgedTraces): string => {
  const parts = [
    ...(events > 0 ? [`${plural('event', events)} removed`] : []),
    ...(commands > 0 ? [`arguments hidden in ${plural('command line', commands)}`] : []),
  ]
  return parts.length === 0 ? '' : `; ${parts.join(', ')}`
}

const textFromInput = (): string => readFileSync(0, 'utf8').replace(/\n$/, '')

async function askFirst(context: Context, path: string, asked: string): Promise<void> {
  if (!canAsk(context.options.json)) {
    throw new SavepointError('usage', `Cannot purge ${path}: it cannot be undone, and nobody can be asked here`, {
      hint: `If you are sure: savepoint purge ${path.startsWith('--text') ? path : quoteWord(path)} --yes`,
    })
  }
  if (await confirm(`${asked} This cannot be undone.`, context.cancellation?.signal)) return
  throw new SavepointError('cancelled', `Cannot purge ${path}: cancelled; nothing was changed`)
}
