import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { restoreJson } from '../../api/json.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { Savepoint } from '../../index.ts'
import { plural } from '../../model/format.ts'
import { showPath } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { addLiveOptions, type LiveOptions } from '../live-options.ts'
import { type RestoreWords, restoreExitCode, restoreText, undoHint } from '../render/restore.ts'
import { missingText, nameOf } from '../render/snapshot.ts'
import { wrongUsage } from '../usage.ts'

interface Options extends LiveOptions {
  to?: string
  dryRun?: boolean
  git: boolean
  safety: boolean
  all?: boolean
  force?: boolean
  run?: string
  native?: boolean
}

export function register(program: Command): void {
  const command = define(program, {
    name: 'rollback',
    aliases: ['checkout', 'restore'],
    group: 'back',
    summary: 'bring the files back to a snapshot',
    description:
      'Brings the files back to how they were in SNAP, .git included. What no snapshot has captured (ignored files, for ' +
      'example) is left alone. The present state is captured first, so that `savepoint undo` gives it back. ' +
      'With a run instead of a snapshot, only what that run changed is taken back, and what was taken back already is not taken ' +
      'back again: what lies there now is somebody else’s. In a subdirectory only that is ' +
      'rolled back unless --all is given. A run that goes on in this directory is stopped first, unless --keep-running is ' +
      'given, the command comes from a process of it, or what is taken back is another run that is over. With --native, where ' +
      'ZFS keeps the snapshot, the dataset itself goes back afterwards, with everything that rules exclude; what that ' +
      'means is said, and --dry-run says it first. With --to, what a PARTIAL snapshot did not capture is listed, and the exit code is 3.',
    usage: 'SNAP|RUN [options] [-- PATH…]',
    examples: [
      ['rollback snap_k3m9x2ab --dry-run', 'show what would change'],
      ['rollback good', 'everything back to the tag "good"'],
      ['rollback good -- src package.json', 'only these paths'],
      ['rollback run_k3m9x2ab', 'take back one run; keep what others did since'],
      ['rollback good --to /tmp/then', 'write that state somewhere else'],
      ['rollback good --restart', 'stop the agent at work, go back, and start it again on its terminal'],
    ],
    cancellable: true,
  })
  addLiveOptions(command)
    .argument('[words...]', 'the snapshot or run, and after -- paths')
    .option('--to <dir>', 'write it into this new or empty directory instead')
    .option('--dry-run', 'only show what would change')
    .option('--no-git', 'leave .git as it is')
    .option('--no-safety', 'go on when the present state cannot be stored first')
    .option('--all', 'the whole target, not only the current subdirectory')
    .option('--run <run>', 'only what this run changed')
    .option('--native', 'where ZFS keeps SNAP: with `zfs rollback`, which destroys later snapshots of it')
    .option(
      '--force',
      'also when the target directory was replaced, its filesystem is not mounted, or --native destroys snapshots of others',
    )
    .action(
      handle<Options>(async (context, { before, after, options }) => {
        const { ref, run } = whichOne(before, options.run)
        const savepoint = await context.open({
          force: options.force,
          withoutBrokenConfig: true,
          makeRoom: !options.dryRun && options.to === undefined,
        })
        sayScope(
          context,
          savepoint,
          after.length > 0 || options.all === true || options.to !== undefined || options.native === true,
        )
        const result = await savepoint
          .rollback(ref, {
            paths: after.length > 0 ? after : undefined,
            dryRun: options.dryRun,
            to: options.to,
            withoutGit: !options.git,
            noSafety: !options.safety,
            run,
            all: options.all,
            keepRunning: options.keepRunning,
            restart: options.restart,
            native: options.native,
          })
          .catch((error: unknown) => {
            throw withPathHint(error, ref)
          })
        if (context.options.json) context.json(restoreJson(result))
        else if (!context.options.quiet) {
          if (result.to !== undefined && !result.dryRun) {
            const from = result.snapshot ? nameOf(result.snapshot) : ref
            context.line(`Wrote ${from} into ${result.to}: ${plural('path', result.files.created)}`)
            context.output.write(missingText(result.uncaptured, context.style))
          } else {
            context.output.write(
              restoreText(result, wordsFor(run ?? ref, undoHint([result], context.style)), context.style),
            )
          }
        }
        return restoreExitCode(result)
      }),
    )
}

/** A run that is taken back ends in no snapshot's state: what others did since stays. */
function wordsFor(ref: string, undo: string): RestoreWords {
  return ref.startsWith('run_')
    ? { done: `Took back ${ref}, to`, would: `Would take back ${ref}, to`, undo }
    : { done: 'Rolled back to', would: 'Would roll back to', undo }
}

/** SNAP, RUN, or RUN SNAP. */
function whichOne(words: string[], optionRun: string | undefined): { ref: string; run: string | undefined } {
  if (words.length > 2 || (words.length === 2 && !words[0]!.startsWith('run_'))) {
    throw wrongUsage('rollback', `"${words[1]}" is one word too many; paths come after --`)
  }
  const run = optionRun ?? (words.length === 2 ? words[0] : undefined)
  const ref = words.at(-1) ?? run
  if (ref !== undefined) return { ref, run }
  throw new SavepointError('usage', 'Cannot roll back: no snapshot is named', {
    hint: '`savepoint log` shows them; `savepoint undo` takes back the last operation; `savepoint revert PATH` brings one file back',
  })
}

/** A path where a snapshot is expected is the likeliest slip. */
function withPathHint(error: unknown, ref: string): unknown {
  if (!(error instanceof SavepointError) || error.code !== 'snapshot.unknown' || !existsSync(ref)) return error
  return new SavepointError(error.code, error.message, {
    hint: `To bring this file back: savepoint revert ${quoteWord(ref)}`,
    data: error.data,
    cause: error,
  })
}

function sayScope(context: Context, savepoint: Savepoint, explicit: boolean): void {
  if (explicit || savepoint.subdirectory === '') return
  context.notice(
    `only ${showPath(savepoint.subdirectory)}/ is rolled back; --all takes the whole of ${savepoint.target}`,
  )
}
