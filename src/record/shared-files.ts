/**
 * Files (links, FIFOs) that have several paths of a bundle as names, which it does not tell: the command linked what had been two. To give one of
 * them its attributes in place would give them to the others; so it becomes a file of its own.
 */
import { constants } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Raw } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import type { PlanAction } from '../targets/dir/restore-plan.ts'
import type { BundleFile } from './bundle.ts'
import { toEntry } from './entries.ts'
import type { Side } from './restore-trees.ts'

/** `files`: of the bundle, by their paths below `root` (open). `linked`: what has several names, and can be made anew. */
export function splitShared(
  actions: PlanAction[],
  root: number,
  linked: ReadonlySet<Raw>,
  files: ReadonlyMap<Raw, BundleFile>,
  side: Side,
): PlanAction[] {
  if (!actions.some(({ action, path }) => action === 'metadata' && linked.has(path))) return actions
  const names = namesByFile(root, files)
  return actions.map(action => {
    if (action.action !== 'metadata' || !linked.has(action.path)) return action
    const { kind, mtimeNs } = action.entry
    const own = files.get(action.path)![side]
    const others = names.get(identityAt(root, action.path) ?? '') ?? []
    const isShared = others.some(file => {
      const entry = toEntry(file, file[side])
      if (entry?.kind !== kind) return false
      return file[side].mode !== own.mode || entry.mtimeNs !== mtimeNs || entry.uid !== own.uid || entry.gid !== own.gid
    })
    return isShared ? { ...action, action: 'replace' } : action
  })
}

function namesByFile(root: number, files: ReadonlyMap<Raw, BundleFile>): Map<string, BundleFile[]> {
  const names = new Map<string, BundleFile[]>()
  for (const [path, file] of files) {
    const identity = identityAt(root, path)
    if (identity === undefined) continue
    const known = names.get(identity)
    if (known) known.push(file)
    else names.set(identity, [file])
  }
  return names
}

/** undefined: there is nothing, or nothing that has another name. */
function identityAt(root: number, path: Raw): string | undefined {
  try {
    const { mode, nlink, dev, ino } = addon.statAt(root, path)
    return (mode & constants.S_IFMT) !== constants.S_IFDIR && nlink > 1 ? `${dev}:${ino}` : undefined
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}
