import { type Command, Option } from 'commander'
import { snapshotDetailJson } from '../../api/json.ts'
import { errorCatalogue, SavepointError } from '../../errors/errors.ts'
import { type BackendName, backendNames } from '../../model/backend-name.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { define, handle } from '../define.ts'
import { skippedText, snapshotLine } from '../render/snapshot.ts'
import { wrongUsage } from '../usage.ts'

/** Words that other tools put after `snapshot`, and what they are here. */
const elsewhere: Record<string, string> = {
  list: 'snapshots',
  ls: 'snapshots',
  restore: 'rollback',
  rollback: 'rollback',
  prune: 'prune',
  delete: 'delete',
  show: 'show',
  diff: 'diff',
}

/** A word that is no run was meant as a label, most likely; where nothing is protected yet, there is no run at all. */
function withLabelHint(error: unknown, word: string): unknown {
  if (!(error instanceof SavepointError) || !/^(run\.unknown|timeline\.none)$/.test(error.code)) return error
  const label = `For a label: savepoint snapshot -m ${quoteWord(word)}`
  const isFirst = error.code === 'timeline.none'
  return new SavepointError(
    error.code,
    isFirst ? `Cannot find run "${word}": nothing is protected here yet` : error.message,
    {
      hint: isFirst ? label : `${label}. ${error.hint}`,
      cause: error,
    },
  )
}

export function register(program: Command): void {
  define(program, {
    name: 'snapshot',
    aliases: ['commit'],
    group: 'protect',
    summary: 'capture the present state',
    description:
      'Captures the state of the target as a snapshot that is kept until you delete it. The first one in a directory ' +
      'starts its timeline. With RUN the snapshot belongs to that run. What cannot be captured is listed, the snapshot says ' +
      'PARTIAL, and the exit code is 3. Where the directory is a btrfs subvolume or a ZFS dataset, the filesystem keeps it, which ' +
      'takes milliseconds; what it holds is read by the next command that compares or goes back, which says what could not be.',
    usage: '[-m LABEL] [RUN]',
    examples: [
      ['snapshot', 'capture now'],
      ['snapshot -m "before the refactoring"', 'with a label, by which it can be named later'],
      ['commit -m works', 'the same under the name that git users type'],
    ],
    cancellable: true,
  })
    .argument('[run]', 'the run that it belongs to')
    .option('-m, --label <text>', 'what this state is')
    .addOption(new Option('--backend <name>', 'who keeps it (default: snapshots.backend)').choices(backendNames))
    .option('--force', 'also for $HOME, /, or a directory that was replaced')
    .action(
      handle<{ label?: string; force?: boolean; backend?: BackendName }>(async (context, { words: [run], options }) => {
        if (run !== undefined && Object.hasOwn(elsewhere, run)) {
          throw wrongUsage('snapshot', `"${run}" is no run`, `savepoint ${elsewhere[run]}`)
        }
        // Where there is no timeline yet, there is no run. Programs are told what it holds, so it is read at once.
        const snapshot = await context
          .open({
            create: run === undefined,
            force: options.force,
            backend: options.backend,
            leaveUnread: !context.options.json,
          })
          .then(savepoint => savepoint.snapshot({ label: options.label, type: 'manual', run }))
          .catch(error => Promise.reject(run === undefined ? error : withLabelHint(error, run)))
        if (context.options.json) context.json(snapshotDetailJson(snapshot, { head: true }))
        else if (context.options.quiet) context.line(snapshot.id)
        else {
          context.line(snapshotLine(snapshot, context.style))
          context.output.write(skippedText(snapshot.skipped, snapshot.skippedCount, context.style))
        }
        return snapshot.skippedCount > 0 ? errorCatalogue.incomplete.exit : 0
      }),
    )
}
