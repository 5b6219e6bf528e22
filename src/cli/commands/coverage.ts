import type { Command } from 'commander'
import { coverageJson } from '../../api/json.ts'
import { placeOf } from '../../api/snapshot-place.ts'
import type { CoverageResult } from '../../index.ts'
import { formatAge, plural } from '../../model/format.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import { define, handle } from '../define.ts'
import { keptCopyText } from '../render/kept-copy.ts'
import { nameOf } from '../render/snapshot.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'coverage',
    group: 'look',
    summary: 'say whether a file is protected, and why not',
    description:
      'Answers two questions about each PATH: will the next snapshot have what is on disk now, and which snapshot has it ' +
      'already. When an ignore rule or a limit keeps it out, the rule is named. Works before the first snapshot, too. ' +
      'It does not read again what the store has of each file, as `verify` does, unless it meets damage: what only `verify` finds counts after `verify --repair`. ' +
      'With --json, one path gives an object, several give an array of them.',
    usage: 'PATH…',
    examples: [
      ['coverage .env', 'is the secret file kept?'],
      ['coverage node_modules dist', 'are they captured or left alone?'],
    ],
  })
    .argument('<paths...>', 'files or directories')
    .action(
      handle(async (context, { words }) => {
        const savepoint = await context.open({ provisional: true })
        const coverages = await savepoint.coverages(words)
        if (context.options.json) {
          const found = coverages.map(each => coverageJson(each, each.latest && placeOf(savepoint, each.latest)))
          return context.json(found.length > 1 ? found : found[0])
        }
        context.output.write(coverages.map(each => coverageText(each, context.now, context.style)).join('\n'))
      }),
    )
}

const reasons: Record<NonNullable<CoverageResult['reason']>, string> = {
  excluded: 'an ignore rule excludes it',
  'too-large': 'it is larger than snapshots.max_file_bytes',
  unreadable: 'it cannot be read',
  mount: 'it is a mount or nested subvolume, or lies in one',
  store: 'it is our own store',
  socket: 'a socket has no content',
  unstable: 'it kept changing while it was read',
  lock: 'it is a live git lock',
  purged: 'it was purged from history',
  vanished: 'it vanished while it was captured',
  'no-room': 'the disk was full',
  'other-store': 'it belongs to another Savepoint store',
  absent: 'it does not exist',
  disabled: 'snapshots are turned off by the configuration',
}

/** Not captured, but what is there can be read. */
const comparable: ReadonlySet<CoverageResult['reason']> = new Set(['excluded', 'too-large', 'disabled'])

function coverageText(coverage: CoverageResult, now: number, style: Style): string {
  const { covered, reason, rule, latest, versions, isUpToDate } = coverage
  const path = style.path(coverage.path)
  const why = [reason ? reasons[reason] : '', rule === undefined ? '' : `(${showText(rule)})`]
    .filter(part => part !== '')
    .join(' ')
  let text: string
  if (coverage.exists === undefined)
    text = `${path} ${style.red('cannot be looked at')}: a directory above it is closed to you\n`
  else if (!coverage.exists)
    text = `${path} does not exist now${rule === undefined ? '' : `, and an ignore rule keeps it out of snapshots (${showText(rule)})`}\n`
  else if (coverage.isBeforeFirst)
    text = covered
      ? `${path}: ${style.yellow('not captured yet')}, a snapshot would capture it\n`
      : `${path}: ${style.red('would not be captured')}${why === '' ? '' : `, ${why}`}\n`
  else if (covered)
    text = `${path}: ${style.green('protected')}, snapshots capture it${rule === undefined ? '' : ` (${showText(rule)})`}\n`
  else text = `${path}: ${style.red('not protected')}${why === '' ? '' : `, ${why}`}\n`
  text += leftOutText(coverage, style)
  if (coverage.isBeforeFirst)
    return `${text}This directory has no snapshot yet. To take the first: ${style.command('snapshot')}\n`
  const copy = coverage.kept ? `${keptCopyText(coverage.path, coverage.kept, !coverage.exists, style)}\n` : ''
  const kept = notReadText(coverage) + copy
  if (!latest && coverage.mayBeIn.length > 0) return `${text}${mayBeInText(coverage.mayBeIn)}\n${kept}`
  if (!latest && coverage.notRead > 0) return `${text}No snapshot that is read has a version of it\n${kept}`
  if (!latest)
    return `${text}No snapshot has a version of it${coverage.exists && covered ? ` yet. Take one: ${style.command('snapshot')}` : ''}\n`
  const age = formatAge(now - latest.createdAt)
  // What cannot be read cannot be compared.
  const isCompared = coverage.exists && (covered || comparable.has(reason))
  const same = coverage.current
    ? 'has exactly what is on disk now'
    : 'has what is on disk now, but for what is left out'
  const which = isUpToDate ? same : 'has another version than the one on disk'
  text += `${nameOf(latest)}, ${age}, ${isCompared ? which : 'has a version of it'} (${plural('snapshot', versions)} in all)\n`
  return text + kept
}

/** Nothing of ours brings it back; but whoever looks for it, or wants to be rid of it, must know. */
function mayBeInText(snapshots: readonly Snapshot[]): string {
  const keepers = [...new Set(snapshots.map(({ backend }) => backend))].join(' or ')
  const which = `${plural('snapshot', snapshots.length)} that ${keepers} keeps`
  return `No snapshot brings it back, but ${which} may have it: everything in the directory is in there`
}

/** A notice before says why. */
const notReadText = ({ notRead }: CoverageResult): string =>
  notRead === 0 ? '' : `Not counted: ${plural('snapshot', notRead)} not read yet, which only a filesystem keeps\n`

function leftOutText({ leftOut }: CoverageResult, style: Style): string {
  const [{ count, paths }, named] = [leftOut, 3]
  if (count === 0) return ''
  const names = paths.slice(0, named).map(({ path, reason }) => `${style.path(path)} (${reason})`)
  return `${style.yellow('but not')} ${plural('path', count)} below it: ${names.join(', ')}${count > named ? ', …' : ''}\n`
}
