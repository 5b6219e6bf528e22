import type { Command } from 'commander'
import { verifyJson } from '../../api/json-maintain.ts'
import { errorCatalogue } from '../../errors/errors.ts'
import type { VerifyResult } from '../../index.ts'
import { formatBytes, formatCount, plural } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { showText } from '../text.ts'

const listed = 10

export function register(program: Command): void {
  define(program, {
    name: 'verify',
    group: 'maintain',
    summary: 'check every byte of the store',
    description:
      'Reads everything that the snapshots need and compares it with its digest. What is damaged is listed with the ' +
      'snapshots and paths that need it (exit code 14), and remembered: until it is stored again, no limit of retention removes ' +
      'another copy. --repair rebuilds the index from the packs, and a damaged timeline ' +
      'from what can be read of it or found beside it and in the packs, keeping the damaged file; the next snapshot then ' +
      'stores lost content again wherever the live files still have it. Archives are read, too: what is wrong with one is written ' +
      'again, and what the store has lost is stored again from one that is whole, or from what a filesystem keeps of ' +
      'this directory. It concerns all protected directories, and can be ' +
      'said anywhere; to repair, not inside of a run.',
    usage: '[--repair]',
    examples: [
      ['verify', 'check'],
      ['verify --repair', 'and repair what can be repaired'],
    ],
    cancellable: true,
  })
    .option('--repair', 'repair what can be repaired')
    .action(
      handle<{ repair?: boolean }>(async (context, { options }) => {
        const { repair } = options
        const result = await (await context.open({ repair, wholeStore: true, leaveBeyond: true })).verify({ repair })
        const exitCode = result.problems.length > 0 ? errorCatalogue['store.damaged'].exit : 0
        if (context.options.json) {
          context.json(verifyJson(result))
          return exitCode
        }
        for (const text of result.repaired) context.line(`Repaired: ${showText(text)}`)
        for (const { what, snapshots, paths } of result.problems) {
          context.line(context.style.red(showText(what)))
          for (const path of paths.slice(0, listed)) context.line(`  ${showText(path)}`)
          if (paths.length > listed)
            context.line(`  … and ${formatCount(paths.length - listed)} more paths (--json lists all)`)
          if (snapshots.length > 0)
            context.line(`  in ${plural('snapshot', snapshots.length)}: ${shortList(snapshots)}`)
        }
        const checked = `${plural('object', result.objects)}, ${formatBytes(result.bytes)}, ${snapshotsText(result)}`
        if (exitCode === 0) {
          if (!context.options.quiet) context.line(`${context.style.green('All good')}: ${checked}`)
          return 0
        }
        context.line(`${plural('problem', result.problems.length)} found: ${checked}`)
        if (result.isRepairable)
          context.line(`To repair: ${context.style.bold(context.style.command('verify --repair'))}`)
        else if (result.problems.some(({ snapshots }) => snapshots.length > 0)) {
          const again = context.style.bold(context.style.command('snapshot'))
          context.line(`To store again what the live files still have: ${again}`)
        }
        return exitCode
      }),
    )
}

/** The store is shared, so that there may be more than `snapshots` lists. */
function snapshotsText({ snapshots, here, deleted, unread }: VerifyResult): string {
  const others = snapshots - here - deleted
  const parts = [
    ...(others > 0 ? [`${formatCount(others)} of other directories`] : []),
    ...(deleted > 0 ? [`${formatCount(deleted)} deleted`] : []),
  ]
  const whose = parts.length > 0 ? ` (${formatCount(here)} here, ${parts.join(', ')})` : ''
  const not = unread > 0 ? `; not checked: ${formatCount(unread)} that only a filesystem keeps until now` : ''
  return `${plural('snapshot', snapshots)}${whose}${not}`
}

const shortList = (ids: string[]) => `${ids.slice(0, listed).join(', ')}${ids.length > listed ? ', …' : ''}`
