import type { Command } from 'commander'
import { quoteWord } from '../../model/shell-quote.ts'
import { define, handle } from '../define.ts'
import { restoreJson } from '../json.ts'
import { isUndoable, restoreExitCode, restoreText, undoHint } from '../render/restore.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'revert',
    group: 'back',
    summary: 'bring single files or directories back',
    description:
      'Brings each PATH back from a snapshot: the one named with --from, otherwise the newest that has it of HEAD and what ' +
      'HEAD descends from. A file that did not exist in the snapshot named with --from is removed. Everything else stays ' +
      'as it is.',
    usage: 'PATH… [--from SNAP] [--dry-run]',
    examples: [
      ['revert src/app.ts', 'its last captured version'],
      ['revert src/app.ts --from good', 'its version in the snapshot tagged "good"'],
      ['revert config --dry-run', 'what would happen to a directory'],
    ],
    cancellable: true,
  })
    .argument('<paths...>', 'files or directories')
    .option('--from <snapshot>', 'the snapshot to take them from')
    .option('--dry-run', 'only show what would change')
    .action(
      handle<{ from?: string; dryRun?: boolean }>(async (context, { words, options }) => {
        const savepoint = await context.open({ withoutBrokenConfig: true, makeRoom: !options.dryRun })
        const results = []
        for (const path of words) results.push(await savepoint.revert(path, options))
        if (context.options.json) context.json(results.map(restoreJson))
        else if (!context.options.quiet) {
          const done = results.filter(isUndoable)
          for (const [i, result] of results.entries()) {
            const name = showText(words[i]!)
            // One hint for all, at the end.
            const undo = result === done.at(-1) ? undoHint(done, context.style) : ''
            const otherwise = options.from === undefined ? otherVersions(words[i]!, context.style) : undefined
            const text = { done: `Reverted ${name} to`, would: `Would revert ${name} to`, undo, otherwise }
            context.output.write(restoreText(result, text, context.style))
          }
        }
        return Math.max(...results.map(restoreExitCode))
      }),
    )
}

/** After a run, the last captured version is what the run made of it. */
function otherVersions(path: string, style: Style): string {
  const word = quoteWord(showText(path.startsWith('-') ? `./${path}` : path))
  return `Its other versions: ${style.command(`history ${word}`)}\nTo bring one back: ${style.command(`revert ${word} --from SNAPSHOT`)}`
}
