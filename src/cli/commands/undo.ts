import type { Command } from 'commander'
import { undoJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { addLiveOptions, type LiveOptions } from '../live-options.ts'
import { restoreExitCode } from '../render/restore.ts'
import { undoText } from '../render/undo.ts'

export function register(program: Command): void {
  const command = define(program, {
    name: 'undo',
    group: 'back',
    summary: 'take back the last operation',
    description:
      'Takes back the newest operation that can be undone: what a run did to the files, a rollback, a revert, a deletion, ' +
      'a tag, an import. If a run moved the protected directory away, it is moved back. Of a directory that it renamed in there, all that was captured ' +
      'goes back to the old name; what was not (ignored, too large) stays under the new one, and the command that puts it back is printed. Call it again to go further back; `savepoint redo` goes ' +
      'forward. What somebody else edited since, or what changed while another run was at work, too, is left alone and ' +
      'listed (exit code 3). A file that a run and somebody else wrote in turns counts as the work of the run and is named; the snapshot of ' +
      'the state before the undo has it (`savepoint revert PATH --from SNAP`). What somebody wrote into a file within a second of the ' +
      'run’s own writes to it cannot be told from those: it goes back with them, not named (`savepoint history PATH` has it). A run that goes on is stopped and taken back, unless --keep-running is given or the command ' +
      'comes from a process of it. `savepoint operations` shows what there is.',
    examples: [
      ['undo', 'take back what the last run did'],
      ['undo --dry-run', 'show what that would change'],
      ['redo', 'and do it again after all'],
    ],
    cancellable: true,
  })
  addLiveOptions(command)
    .option('--all', 'also what the operation changed outside of this subdirectory')
    .option('--dry-run', 'only show what would change')
    .action(
      handle<{ all?: boolean; dryRun?: boolean } & LiveOptions>(async (context, { options }) => {
        const savepoint = await context.open({
          withoutBrokenConfig: true,
          makeRoom: !options.dryRun,
          leaveStep: !options.dryRun,
        })
        const result = await savepoint.undo({
          all: options.all,
          dryRun: options.dryRun,
          keepRunning: options.keepRunning,
          restart: options.restart,
        })
        if (context.options.json) context.json(undoJson(result))
        else if (!context.options.quiet) context.output.write(undoText(result, 'undo', context.style))
        return restoreExitCode(result.restore)
      }),
    )
}
