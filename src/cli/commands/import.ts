import type { Command } from 'commander'
import { importJson } from '../../api/json-maintain.ts'
import { plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { nameOf } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'import',
    group: 'organise',
    summary: 'read an archive as a snapshot',
    description:
      'Reads a .tar, .tar.gz or .tar.zst as a new snapshot. The live files are not touched. Archives that would write ' +
      'outside the target or grow without bound are refused, and those with more than 5,000 directories in each other.',
    usage: 'FILE [-m LABEL] [--force]',
    examples: [['import good.tar.zst -m "from the server"', 'then: savepoint diff, savepoint rollback']],
    cancellable: true,
  })
    .argument('<file>', 'the archive')
    .option('-m, --label <text>', 'what this state is')
    .option('--force', 'also when it unpacks to suspiciously much')
    .action(
      handle<{ label?: string; force?: boolean }>(async (context, { words: [file], options }) => {
        const result = await (await context.open({ create: true })).importArchive(file!, {
          label: options.label,
          force: options.force,
        })
        if (context.options.json) return context.json(importJson(result))
        if (context.options.quiet) return context.line(result.snapshot.id)
        context.line(`Imported ${file} as ${nameOf(result.snapshot)}: ${plural('file', result.files)}`)
        context.line(`To see it: ${context.style.command(`rollback ${result.snapshot.id} --dry-run`)}`)
        context.line(`To undo: ${context.style.bold(context.style.wayBack('undo', []))}`)
      }),
    )
}
