/** What a command of a run must not change, unless it is Savepoint: our home, and where filesystems keep snapshots of the target beside it. */
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import { knownPlace, whereFor } from './backend.ts'
import type { Context } from './context.ts'
import { placesIn } from './moved-places.ts'

/** Of what is there by now, and without asking a filesystem: absolute paths without links. */
export function protectedPlaces(ctx: Context): string[] {
  const { directories } = whereFor(ctx.home, ctx.targetPath, ctx.timelineId)
  const last = knownPlace(ctx.db)
  const places = [...directories, ...placesIn(ctx), ...(last ? [last.place] : [])]
  // Those of ZFS are no paths. All timelines share what is above a place.
  const shared = places.filter(place => place.startsWith('/')).map(place => dirname(place))
  return [...new Set([ctx.home, ...shared].flatMap(realPath))]
}

function realPath(path: string): string[] {
  try {
    return [realpathSync(path)]
  } catch (error) {
    if (!errnoOf(error)) throw error
    return []
  }
}
