/** `bundle restore`: says what it will do, asks, and says what it did. */
import { SavepointError } from '../../errors/errors.ts'
import { plural } from '../../model/format.ts'
import { showPath } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { type Bundle, type BundleRestoreResult, restoreBundle } from '../../record/index.ts'
import { canAsk, confirm } from '../confirm.ts'
import type { Context } from '../context.ts'

export interface RestoreOptions {
  before?: boolean
  after?: boolean
  to?: string
  inPlace?: boolean
  anywhere?: boolean
  dryRun?: boolean
  withGit?: boolean
  force?: boolean
  yes?: boolean
}

const listed = 20
const letters = { create: 'A', delete: 'D', replace: 'M', metadata: 'm' } as const
const reasons: Record<BundleRestoreResult['leftAlone'][number]['why'], string> = {
  edited: 'it was changed since the command ended; --force replaces it',
  'not-stored': 'its content is not in the bundle',
  'no-room': 'there is no room',
  'holds-uncaptured': 'it holds something else',
  refused: 'this user may not change it, or its owner',
  attributes: 'without its owner or other attributes, which the system refused',
  'in-the-way': 'something else is there, of which the bundle says nothing',
  outside: 'somebody else changed it',
  purged: 'it was purged',
  'only-copy': 'there is no other',
  overlapped: 'somebody else changed it, too',
  'only-in-git': 'only git has its content: --with-git takes it from there',
  'not-in-git': 'only git had its content, and the repository does not have it any more',
  special: 'it is a socket or a device',
  'left-behind':
    'a restore that was killed left it, and it holds something that is nowhere else: look at it, and remove it',
  'set-aside': 'it holds what could neither be removed nor put back: look at it, and remove it',
  ours: 'it belongs to Savepoint itself',
  mounted: 'something is mounted there',
  subvolume: 'it is a nested subvolume',
  unseen: 'the recording could not look at it in the end: it may not be as it was before',
}

export async function restoreWords(context: Context, bundle: Bundle, options: RestoreOptions): Promise<number> {
  check(options)
  const isInPlace = options.inPlace === true
  const result = await restoreBundle(bundle, {
    ...context.engineOptions(),
    side: options.before ? 'before' : 'after',
    to: isInPlace ? undefined : options.to,
    anywhere: options.anywhere === true,
    force: options.force === true,
    withGit: options.withGit === true,
    dryRun: options.dryRun === true,
    confirm: plan => agree(context, bundle, plan, options.yes === true),
  })
  if (result.cancelled) throw new SavepointError('cancelled', 'Cancelled: nothing was changed')
  const exitCode = result.leftAlone.some(({ why }) => why !== 'only-in-git') ? 3 : 0
  if (context.options.json) {
    context.json(restoreJson(bundle, result))
    return exitCode
  }
  if (!context.options.quiet) say(context, bundle, result, options.anywhere === true)
  return exitCode
}

function check({ before, after, to, inPlace, anywhere, yes, force }: RestoreOptions): void {
  const wrong = (problem: string, hint: string) =>
    new SavepointError('usage', `Cannot restore the bundle: ${problem}`, { hint })
  if (before && after)
    throw wrong('--before and --after are two states', 'Name one of them; without, it is the state after')
  if ((to === undefined) === !inPlace)
    throw wrong(
      inPlace ? '--to and --in-place are two places' : 'it has absolute paths, and nothing says where they are to go',
      'Name a directory with --to DIR, or say --in-place to put them where they were',
    )
  if (to !== undefined && (anywhere || yes || force))
    throw wrong('--anywhere, --yes and --force are about --in-place', 'Leave them out')
}

/** What is in a bundle may come from anybody: it is shown before it is done. */
async function agree(context: Context, bundle: Bundle, plan: BundleRestoreResult, isAgreed: boolean): Promise<boolean> {
  if (isAgreed) return true
  if (!canAsk(context.options.json))
    throw new SavepointError('usage', 'Cannot restore in place: nobody can be asked here', {
      hint: 'See what it would do with --dry-run, and then say --yes',
    })
  process.stderr.write(planText(plan))
  const question = `${plural('path', plan.changes.length)} will change, by ${quoteWord(bundle.directory)}. Go on?`
  return confirm(question, context.cancellation?.signal)
}

function say(context: Context, bundle: Bundle, result: BundleRestoreResult, isAnywhere: boolean): void {
  const { style } = context
  if (result.changes.length === 0 && result.to === undefined)
    context.line(
      result.leftAlone.length + result.outside > 0 ? 'Nothing was changed' : 'Nothing to do: it is all as it should be',
    )
  else if (result.dryRun) context.line(`Would restore the state ${result.side} the command:`)
  else
    context.line(
      `Restored the state ${result.side} the command${result.to === undefined ? '' : ` to ${result.to}`}: ${countText(result)}`,
    )
  if (result.dryRun) context.output.write(planText(result))
  if (result.outside > 0)
    context.line(
      `${plural('path', result.outside)} not below ${bundle.manifest.start_cwd} left alone: --anywhere restores them, too`,
    )
  for (const [why, left] of Map.groupBy(result.leftAlone, each => each.why)) {
    const names = left.slice(0, listed).map(({ path }) => `  ${showPath(path)}\n`)
    context.output.write(
      `${why === 'attributes' ? 'Restored' : 'Left alone'} (${reasons[why]}):\n${names.join('')}${left.length > listed ? `  … and ${left.length - listed} more\n` : ''}`,
    )
  }
  for (const path of result.keptDirs) context.line(`${showPath(path)} stays: it holds something else`)
  if (bundle.manifest.git_repositories.length > 0 && result.to === undefined && result.changes.length > 0)
    context.line(style.dim('What lies in .git is not in a bundle: commits and branches are as they were'))
  if (result.undo === undefined) return
  // The second bundle stays below the same directory unless told otherwise.
  const where = isAnywhere ? '--in-place --anywhere' : '--in-place'
  context.line(`To undo: ${style.bold(style.command(`bundle restore --before ${where} ${quoteWord(result.undo)}`))}`)
}

function countText({ changes }: BundleRestoreResult): string {
  const count = (action: string) => changes.filter(change => change.action === action).length
  return `${count('create')} created, ${count('replace')} replaced, ${count('delete')} deleted, ${count('metadata')} with other attributes`
}

function planText({ changes }: BundleRestoreResult): string {
  const lines = changes.slice(0, listed).map(({ action, path }) => `  ${letters[action]} ${showPath(path)}\n`)
  return `${lines.join('')}${changes.length > listed ? `  … and ${changes.length - listed} more (--json lists all)\n` : ''}`
}

const restoreJson = (bundle: Bundle, result: BundleRestoreResult) => ({
  bundle: bundle.directory,
  state: result.side,
  dry_run: result.dryRun,
  to: result.to ?? null,
  changes: result.changes.map(({ action, path }) => ({ action, path: showPath(path) })),
  left_alone: result.leftAlone.map(({ path, why }) => ({ path: showPath(path), why })),
  kept_directories: result.keptDirs.map(showPath),
  outside: result.outside,
  undo: result.undo ?? null,
})
