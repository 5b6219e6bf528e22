/** Turns a path that a person wrote into one relative to the target. Never leaves the target. */
import { constants, fstatSync, readFileSync, realpathSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import {
  hasStrayBytes,
  type Raw,
  rawFromBytes,
  rawFromShown,
  rawFromText,
  rawToBytes,
  relativeRaw,
  showPath,
} from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { addon, type Stat } from '../native/addon.ts'
import { openDir } from '../targets/dir/dir-target.ts'
import { changedOf } from '../targets/dir/opened-paths.ts'
import type { Context } from './context.ts'
import { placeInTarget } from './place-in-target.ts'
import { absolutePath, relativeTo } from './target-registry.ts'

/**
 * Relative paths start at cwd; "." and ".." are resolved as text, symlinks in it are not followed. A name with
 * backslashes is taken as the escaped form that we print, unless a file of that very name exists or it has bytes that the
 * escaped form would not have.
 */
export function resolvePath(ctx: Context, text: string): Raw {
  const literal = toTargetPath(ctx, text, rawFromText(text))
  if (!text.includes('\\') || hasStrayBytes(text) || existsLive(ctx, literal)) return literal
  return toTargetPath(ctx, text, rawFromShown(text))
}

function toTargetPath(ctx: Context, text: string, raw: Raw): Raw {
  const absolute = raw.startsWith('/') ? raw : `${rawFromBytes(ctx.cwd)}/${raw}`
  const relative = raw === '' || raw.includes('\0') ? undefined : insideTarget(ctx.targetPath, normalise(absolute))
  if (relative !== undefined) return relative
  throw new SavepointError(
    'path.outside',
    `Cannot use ${text === '' ? 'an empty path' : text}: it lies outside the target`,
    {
      hint: `The target is ${showPath(rawFromBytes(ctx.targetPath))}${whereItStarts(ctx, raw)}`,
    },
  )
}

/** From elsewhere (`-t DIR`), a path may be meant as one of the target's. */
function whereItStarts(ctx: Context, raw: Raw): string {
  const isElsewhere = placeInTarget(ctx.targetPath, ctx.cwd) === undefined
  if (!isElsewhere || raw === '' || raw.startsWith('/') || raw.includes('\0')) return ''
  const meant = relativeTo(ctx.targetPath, rawToBytes(normalise(`${rawFromBytes(ctx.targetPath)}/${raw}`)))
  const whole = meant !== undefined && existsLive(ctx, meant) ? `: write ${typedPath(ctx, meant)}` : ''
  return `, and paths start at the current directory, ${showPath(rawFromBytes(ctx.cwd))}${whole}`
}

/** By its text; else a leading part of it may lead into the target through links or mounts that lie outside of it ($PWD may). */
function insideTarget(target: Buffer, absolute: Raw): Raw | undefined {
  const direct = relativeTo(target, rawToBytes(absolute))
  if (direct !== undefined) return direct
  const parts = absolute.split('/').slice(1)
  for (let count = 1; count <= parts.length; count++) {
    const real = realPathOf(`/${parts.slice(0, count).join('/')}`)
    const entered = real && placeInTarget(target, real)
    if (entered !== undefined) return [...(entered === '' ? [] : [entered]), ...parts.slice(count)].join('/')
  }
  return undefined
}

function realPathOf(path: Raw): Buffer | undefined {
  try {
    return realpathSync.native(rawToBytes(path), 'buffer') as unknown as Buffer
  } catch {
    return undefined
  }
}

function normalise(absolute: Raw): Raw {
  const parts: Raw[] = []
  for (const part of absolute.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** `path` as it can be typed where the user stands: relative inside of the target, else absolute; quoted for a shell. */
export function typedPath(ctx: Context, path: Raw): string {
  const isInside = placeInTarget(ctx.targetPath, ctx.cwd) !== undefined
  const shown = isInside ? relativeRaw(ctx.subdirectory, path) : rawFromBytes(absolutePath(ctx.targetPath, path))
  return quoteWord(showPath(shown.startsWith('-') ? `./${shown}` : shown))
}

export const existsLive = (ctx: Context, path: Raw): boolean => lookLive(ctx, path) === 'there'

/** `hidden`: a directory above it does not let this user look. */
export function lookLive(ctx: Context, path: Raw): 'there' | 'absent' | 'hidden' {
  try {
    beneath(ctx, root => addon.statAt(root, path))
    return 'there'
  } catch (error) {
    return errnoOf(error) === 'EACCES' ? 'hidden' : 'absent'
  }
}

/** undefined when nothing is there, or that cannot be seen. When it was changed, but for what our own captures did. */
export function statLive(ctx: Context, path: Raw): Stat | undefined {
  try {
    const stat = beneath(ctx, root => addon.statAt(root, path))
    return { ...stat, ctimeNs: changedOf(ctx.reclosed, stat.ino, stat.ctimeNs) }
  } catch {
    return undefined
  }
}

/** The content of a regular file of the target as it is now; undefined when there is none that can be read. */
export function readLive(ctx: Context, path: Raw): Buffer | undefined {
  try {
    return beneath(ctx, root => {
      // Something else may have taken its place: a FIFO would wait for ever.
      const fd = addon.openAt(root, path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0)
      try {
        return fstatSync(fd).isFile() ? readFileSync(fd) : undefined
      } finally {
        addon.close(fd)
      }
    })
  } catch {
    return undefined
  }
}

function beneath<T>(ctx: Context, look: (root: number) => T): T {
  let root: number | undefined
  try {
    root = openDir(ctx.targetPath)
    return look(root)
  } finally {
    if (root !== undefined) addon.close(root)
  }
}
