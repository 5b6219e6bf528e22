/** Whether what a command destroys is something that a snapshot of the target would bring back. */
import { lstatSync, realpathSync } from 'node:fs'
import {
  isWithin,
  joinRaw,
  nameOf,
  parentOf,
  type Raw,
  rawFromBytes,
  rawFromText,
  rawToBytes,
} from '../model/raw-path.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Context } from './context.ts'

/** `operands`: as written, seen from `cwd`; none: what lies in that directory. */
export function endangers(ctx: Context, cwd: Raw, operands: readonly string[]): boolean {
  const target = rawFromBytes(ctx.targetPath)
  const places = operands.length === 0 ? [cwd] : operands.map(operand => placeOf(cwd, rawFromText(operand)))
  return places.some(place => {
    if (place === undefined) return false
    if (isWithin(target, place)) return true
    return isWithin(place, target) && !isLeftOut(ctx, place.slice(target.length + 1))
  })
}

/** Absolute, without symbolic links on the way; undefined when nothing is there. */
function placeOf(cwd: Raw, operand: Raw): Raw | undefined {
  const path = operand.startsWith('/') ? operand : `${cwd}/${operand}`
  const plain = path.replace(/\/+$/, '') || '/'
  try {
    const name = nameOf(plain)
    if (name === '.' || name === '..' || plain === '/') return rawFromBytes(realpathSync(rawToBytes(plain), 'buffer'))
    lstatSync(rawToBytes(plain))
    const parent = rawFromBytes(realpathSync(rawToBytes(parentOf(plain) || '/'), 'buffer'))
    return parent === '/' ? `/${name}` : joinRaw(parent, name)
  } catch {
    return undefined
  }
}

/** Whether the last snapshot says that this is not captured. What it does not know is new, and may be. */
function isLeftOut(ctx: Context, path: Raw): boolean {
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  if (!head) return false
  return entryAt(ctx.store, rootTreeOf(ctx.store, head.root), path)?.kind === 'unknown'
}
