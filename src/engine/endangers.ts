/** Whether what a command destroys is something that a snapshot of the target would bring back. */
import { lstatSync } from 'node:fs'
import { shownAt } from '../backends/mounts-below.ts'
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
  // The rest of its words may be any; and what they are seen from has no path where it is too long.
  const isUnclear = event.truncated || !event.cwd.startsWith('/')
  return destructive && isUnclear
    ? { ...destructive, operands: ANYWHERE, unlessDirectory: [], underWay: undefined }
    : destructive
}

/** `target`: where it is now. `cwd`: where the command was started. A path through another mount is one to the target, too. */
export function endangers(ctx: Context, target: Buffer, cwd: Raw, destructive: Destructive): boolean {
  const { operands, unlessDirectory, follows, wholeRepository, underWay } = destructive
  if (underWay && !isUnderWay(cwd, operands, underWay)) return false
  const shown = shownAt(target)
  const isInDanger = (place: Raw): boolean =>
    shown.some(each =>
      isWithin(each.place, place)
        ? !isLeftOut(ctx, each.below)
        : isWithin(place, each.place) && !isLeftOut(ctx, joinRaw(each.below, place.slice(each.place.length + 1))),
    )
  if (operands.length === 0) return isInDanger(cwd)
  return operands.some(operand => {
    const places = placesOf(cwd, rawFromText(operand), follows)
    if (unlessDirectory.includes(operand) && places.some(isDirectory)) return false
    return places.some(place => isInDanger(place) || (wholeRepository && isInDanger(workTreeOf(place) ?? place)))
  })
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
