import type { Command } from 'commander'
import { define, handle } from '../define.ts'

export function register(program: Command): void {
  define(program, {
    name: 'trust',
    group: 'protect',
    summary: 'let a savepoint.yaml take effect that a run wrote',
    description:
      'A version of savepoint.yaml that a process of a run wrote does not take effect by itself: an agent could switch off ' +
      'what protects you from it. Until you trust it, the version from before the run counts. Shows what it weakens, and ' +
      'lets it take effect.',
    examples: [
      ['trust --dry-run', 'only show what it weakens'],
      ['trust', 'let it take effect'],
    ],
  })
    .option('--dry-run', 'only show what it weakens')
    .action(
      handle<{ dryRun?: boolean }>(async (context, { options }) => {
        const savepoint = await context.open()
        const result = await savepoint.trust({ dryRun: options.dryRun })
        const { untrusted, dryRun, weakens } = result
        if (context.options.json)
          return context.json({ untrusted, trusted: untrusted && !dryRun, dry_run: dryRun, weakens })
        if (context.options.quiet) return
        if (!untrusted) return context.line('Nothing to trust: no run wrote the savepoint.yaml that is there')
        context.line(weakens.length > 0 ? `It weakens protection: ${weakens.join(', ')}` : 'It weakens nothing')
        context.line(dryRun ? 'It would take effect' : 'savepoint.yaml takes effect from now on')
      }),
    )
}
