import type { Command } from 'commander'
import { undoJson } from '../../api/json.ts'
import { define, handle } from '../define.ts'
import { restoreExitCode } from '../render/restore.ts'
import { undoText } from '../render/undo.ts'

export function register(program: Command): void {
  define(program, {
    name: 'redo',
    group: 'back',
    summary: 'do again what was undone',
    description:
      'Does again what `savepoint undo` took back last, and nothing that it had left alone. A new operation ends the way forward.',
    examples: [['redo', 'after an undo too many']],
    cancellable: true,
  })
    .option('--all', 'also what the operation changed outside of this subdirectory')
    .option('--dry-run', 'only show what would change')
    .action(
      handle<{ all?: boolean; dryRun?: boolean }>(async (context, { options }) => {
        const savepoint = await context.open({
          withoutBrokenConfig: true,
          makeRoom: !options.dryRun,
          leaveStep: !options.dryRun,
        })
        const result = await savepoint.redo({ all: options.all, dryRun: options.dryRun })
        if (context.options.json) context.json(undoJson(result))
        else if (!context.options.quiet) context.output.write(undoText(result, 'redo', context.style))
        return restoreExitCode(result.restore)
      }),
    )
}
