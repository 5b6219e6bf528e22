/** What of the target a command destroys, so that a snapshot would bring it back. */
import { lstatSync, readlinkSync } from 'node:fs'
import { isApart, shownAt } from '../backends/mounts-below.ts'
import { errnoOf } from '../errors/errors.ts'
import { findGitDir, tryStat } from '../files/git-dir.ts'
import { type Destructive, destructiveOf } from '../model/command-kind.ts'
import { ANYWHERE } from '../model/command-words.ts'
import { isWithin, joinRaw, nameOf, parentOf, type Raw, rawFromText, rawToBytes, rawToText } from '../model/raw-path.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { ExecEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { gitAliases, gitEnvOf } from './git-aliases.ts'
import { absolute, real, workTreeOf } from './git-place.ts'
import { isFed } from './process-input.ts'

/** What a command that waits is about to destroy; undefined: nothing. */
export async function destroyedBy(ctx: Context, event: ExecEvent, argv: string[]): Promise<Destructive | undefined> {
  const aliases = await gitAliases(ctx, event.cwd, argv)
  const destructive = destructiveOf(argv, {
    patterns: ctx.config.snapshots.triggers.guard_commands,
    alias: ({ verb }) => aliases.get(verb),
    gitEnv: gitEnvOf(event),
    file: rawToText(event.program),
    cwd: rawToText(event.cwd),
    isFed: () => isFed(event.pid),
  })
  if (!destructive) return undefined
  // The rest of its words may be any; and what they are seen from has no path where it is too long.
  if (event.truncated || !event.cwd.startsWith('/')) return anywhere(destructive)
  return hasOtherMounts(event.pid) ? amongOtherMounts(ctx, event.pid, destructive) : destructive
}

const anywhere = (destructive: Destructive): Destructive => ({
  ...destructive,
  ...{ operands: ANYWHERE, unlessDirectory: [], underWay: undefined },
})

/** Who may not look at that of another process takes it for one of its own. */
function hasOtherMounts(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`) !== readlinkSync('/proc/self/ns/mnt')
  } catch (error) {
    return errnoOf(error) === 'EACCES'
  }
}

/** There paths are others: what is there, and on a disk, may be in the target, or have it below, by whatever name. */
function amongOtherMounts(ctx: Context, pid: number, destructive: Destructive): Destructive | undefined {
  const { operands, unlessDirectory } = destructive
  const mayBe = (operand: string): boolean => {
    const view = Buffer.from(`/proc/${pid}/${operand.startsWith('/') ? 'root' : 'cwd/'}`)
    const place = Buffer.concat([view, rawToBytes(rawFromText(operand))])
    const stat = tryStat(place)
    if (!stat) return isLinkOrShut(place)
    return !(unlessDirectory.includes(operand) && stat.isDirectory()) && !isApart(ctx.targetPath, place, pid)
  }
  try {
    return (operands.length === 0 ? ['.'] : operands).some(mayBe) ? anywhere(destructive) : undefined
  } catch (error) {
    if (!errnoOf(error)) throw error
    return anywhere(destructive)
  }
}

/** What nobody can follow to its end may be a link, which has one, or be hidden from us. */
function isLinkOrShut(place: Buffer): boolean {
  try {
    lstatSync(place)
    return true
  } catch (error) {
    return errnoOf(error) === 'EACCES'
  }
}

/** `target`: where it is now, or was before. `cwd`: where the command was started. */
export function isInDanger(ctx: Context, target: Buffer, cwd: Raw, destructive: Destructive): boolean {
  return !endangered(ctx, target, cwd, destructive).next().done
}

/**
 * Paths relative to the target, with all that is in them. A path through another mount is one to the target, too.
 */
export function* endangered(ctx: Context, target: Buffer, cwd: Raw, destructive: Destructive): Generator<Raw> {
  const { operands, unlessDirectory, follows, wholeRepository, underWay } = destructive
  if (underWay && !isUnderWay(cwd, operands, underWay)) return
  const shown = shownAt(target)
  const inTarget = (place: Raw): Raw[] =>
    shown
      .filter(each => isWithin(each.place, place) || isWithin(place, each.place))
      .map(each => (isWithin(each.place, place) ? each.below : joinRaw(each.below, place.slice(each.place.length + 1))))
      .filter(path => !isLeftOut(ctx, path))
  if (operands.length === 0) yield* inTarget(cwd)
  for (const operand of operands) {
    const places = placesOf(cwd, rawFromText(operand), follows)
    if (unlessDirectory.includes(operand) && places.some(isDirectory)) continue
    const around = wholeRepository ? places.map(place => workTreeOf(place) ?? place) : []
    yield* [...places, ...around].flatMap(inTarget)
  }
}

/**
 * Absolute, without symbolic links on the way; none when nothing is there. With `follows`, or a slash behind it, a link is also
 * what it leads to: many a program does not stop at it.
 */
function placesOf(cwd: Raw, operand: Raw, follows: boolean): Raw[] {
  const path = absolute(cwd, operand)
  const plain = path.replace(/\/+$/, '') || '/'
  const name = nameOf(plain)
  if (name === '.' || name === '..' || plain === '/') return [real(plain)].filter(place => place !== undefined)
  if (!isThere(plain)) return []
  const parent = real(parentOf(plain) || '/')
  const itself = parent === undefined ? undefined : parent === '/' ? `/${name}` : joinRaw(parent, name)
  const end = follows || plain !== path ? real(plain) : undefined
  return [itself, end].filter(place => place !== undefined)
}

/** What cannot be looked at (below a file, closed) is no reason to overlook the other operands. */
function isThere(path: Raw): boolean {
  try {
    lstatSync(rawToBytes(path))
    return true
  } catch {
    return false
  }
}

const isDirectory = (place: Raw): boolean => tryStat(rawToBytes(place))?.isDirectory() ?? false

/** Whether the repository is in the middle of what would be aborted. */
function isUnderWay(cwd: Raw, operands: readonly string[], marks: readonly string[]): boolean {
  return operands.some(operand => {
    const place = real(absolute(cwd, rawFromText(operand)))
    if (place === undefined) return false
    const tree = workTreeOf(place)
    const directories = [rawToBytes(place), ...(tree === undefined ? [] : [findGitDir(rawToBytes(tree))!.dir])]
    return directories.some(directory =>
      marks.some(mark => tryStat(Buffer.concat([directory, Buffer.from(`/${mark}`)])) !== undefined),
    )
  })
}

/** Whether the last snapshot says that this is not captured. What it does not know is new, and may be. */
function isLeftOut(ctx: Context, path: Raw): boolean {
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  if (!head || path === '') return false
  return entryAt(ctx.store, rootTreeOf(ctx.store, head.root), path)?.kind === 'unknown'
}
