import type { Command } from 'commander'
import { exportJson } from '../../api/json-maintain.ts'
import { errorCatalogue } from '../../errors/errors.ts'
import { formatBytes, plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { isPartial, missingText } from '../render/snapshot.ts'

const listed = 10

export function register(program: Command): void {
  define(program, {
    name: 'export',
    group: 'organise',
    summary: 'write a snapshot into an archive',
    description:
      'Writes a snapshot as .tar.zst (.tzst), .tar.gz (.tgz) or .tar, by the name of FILE. Small secret files that are kept although git ' +
      'ignores them (.env) are left out unless --with-kept is given. What a PARTIAL snapshot did not capture is listed, and the exit code is 3.',
    usage: 'SNAP FILE [--with-kept] [--force]',
    examples: [
      ['export good good.tar.zst', 'a tagged snapshot'],
      ['export HEAD state.tar.gz --with-kept', '.env and the like included'],
    ],
    cancellable: true,
  })
    .argument('<snapshot>', 'id, prefix, tag or label')
    .argument('<file>', 'the archive: .tar.zst, .tzst, .tar.gz, .tgz or .tar')
    .option('--force', 'replace FILE if it exists')
    .option('--with-kept', 'also files that git ignores but Savepoint keeps (.env)')
    .action(
      handle<{ withKept?: boolean; force?: boolean }>(async (context, { words: [ref, file], options }) => {
        const savepoint = await context.open({ force: options.force })
        const result = await savepoint.exportSnapshot(ref!, file!, { withKept: options.withKept })
        const { uncaptured } = result
        const code = uncaptured.some(isPartial) ? errorCatalogue.incomplete.exit : 0
        if (context.options.json) context.json(exportJson(result))
        if (context.options.json || context.options.quiet) return code
        context.line(
          `Wrote ${result.snapshot.id} into ${result.file}: ${plural('file', result.files)}, ${formatBytes(result.bytes)}`,
        )
        context.output.write(missingText(uncaptured, context.style))
        if (result.leftOut.length === 0) return code
        const names = result.leftOut.slice(0, listed).map(context.style.path).join(', ')
        context.line(`Left out (--with-kept adds them): ${names}${result.leftOut.length > listed ? ', …' : ''}`)
        return code
      }),
    )
}
