import type { Command } from 'commander'
import { SavepointError } from '../../errors/errors.ts'
import { formatBytes, plural } from '../../model/format.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { canAsk, confirm } from '../confirm.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { purgeJson } from '../json-maintain.ts'
import { showText } from '../text.ts'

const listed = 10

export function register(program: Command): void {
  define(program, {
    name: 'purge',
    group: 'maintain',
    summary: 'remove a path from all history, for good',
    description:
      'Removes every captured version of PATH from every snapshot and from the store: for secrets that should not have ' +
      'been captured. The live file stays. THIS CANNOT BE UNDONE. On a terminal it asks first; elsewhere give --yes.',
    usage: 'PATH [--yes]',
    examples: [
      ['purge .env.production', 'asks, then removes'],
      ['purge secrets --yes', 'a directory, without asking'],
    ],
    cancellable: true,
  })
    .argument('<path>', 'a file or directory')
    .option('-y, --yes', 'do not ask')
    .action(
      handle<{ yes?: boolean }>(async (context, { words: [path], options }) => {
        const savepoint = await context.open({ makeRoom: true })
        if (!options.yes) await askFirst(context, path!)
        const result = await savepoint.purge(path!)
        const exitCode = result.elsewhere.length > 0 ? 3 : 0
        if (context.options.json) {
          context.json(purgeJson(result))
          return exitCode
        }
        const versions = `${plural('version', result.versions)} in ${plural('snapshot', result.snapshots)}`
        if (!context.options.quiet)
          context.line(
            `Purged ${context.style.path(result.path)}: ${versions}, ${formatBytes(result.freedBytes)} freed`,
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

async function askFirst(context: Context, path: string): Promise<void> {
  if (!canAsk(context.options.json)) {
    throw new SavepointError('usage', `Cannot purge ${path}: it cannot be undone, and nobody can be asked here`, {
      hint: `If you are sure: savepoint purge ${quoteWord(path)} --yes`,
    })
  }
  const question = `Remove every version of ${showText(path)} from all snapshots? This cannot be undone.`
  if (await confirm(question, context.cancellation?.signal)) return
  throw new SavepointError('cancelled', `Cannot purge ${path}: cancelled; nothing was changed`)
}
