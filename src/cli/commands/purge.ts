import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { purgedTracesJson, purgeJson } from '../../api/json-maintain.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { PurgedTraces } from '../../index.ts'
import { formatBytes, plural } from '../../model/format.ts'
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
      'have its content. --text hides a text in all recorded command lines instead. The live file stays. THIS CANNOT BE ' +
      'UNDONE. On a terminal it asks first; elsewhere give --yes.',
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
          await askFirst(context, path!, `Remove every version of ${showText(path!)} from all snapshots?`)
        }
        const result = await savepoint.purge(path!)
        const exitCode = result.elsewhere.length > 0 ? 3 : 0
        if (context.options.json) {
          context.json(purgeJson(result))
          return exitCode
        }
        const versions = `${plural('version', result.versions)} in ${plural('snapshot', result.snapshots)}`
        if (!context.options.quiet)
          context.line(
            `Purged ${context.style.path(result.path)}: ${versions}, ${formatBytes(result.freedBytes)} freed${tracesText(result)}`,
          )
        if (result.elsewhere.length > 0) {
          context.line(
            context.style.yellow('The same content is still stored under other paths; purge them too if it is secret:'),
          )
          for (const { snapshot, path: other } of result.elsewhere.slice(0, listed))
            context.line(`  ${context.style.path(other)} (${snapshot})`)
          if (result.elsewhere.length > listed)
            context.line(`  … and ${result.elsewhere.length - listed} more (--json lists all)`)
        }
        return exitCode
      }),
    )
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
