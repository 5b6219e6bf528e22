/**
 * The directory beside the target, or in our home, that a filesystem keeps states in: it may have been moved, with the
 * target or with the home, and where it was is written in every row.
 */
import { hideAgain, movedPlace } from '../backends/place.ts'
import { SavepointError } from '../errors/errors.ts'
import { whereFor } from './backend.ts'
import { type Context, withTimelineLock } from './context.ts'
import { followGoing, goingPlaces } from './native-going.ts'
import { stateOf } from './native-ref.ts'

/** Called before anything is read from there, or removed, and hides it from git where that was undone. What is nowhere stays as it is: it may not be mounted. */
export async function followPlaces(ctx: Context): Promise<void> {
  if (ctx.timelineId === '' || ctx.unwritable) return
  const { directories } = whereFor(ctx.home, ctx.targetPath, ctx.timelineId)
  const places = placesIn(ctx)
  hideAgain(places)
  if (places.every(place => movedPlace({ place, name: '' }, directories) === undefined)) return
  if (ctx.db.damage() !== undefined) return
  try {
    await withTimelineLock(ctx, 'find moved snapshots', async () => follow(ctx, directories))
  } catch (error) {
    if (!(error instanceof SavepointError) || error.code === 'cancelled') throw error
    ctx.warn(`snapshots that the filesystem keeps were moved, and are not found now: ${error.message}`)
  }
}

/** Of a damaged timeline none, perhaps: whoever wants more of it will say so. */
export function placesIn({ db }: Context): string[] {
  try {
    return [...db.native.places(), ...goingPlaces(db)]
  } catch (error) {
    if (db.damage() === undefined) throw error
    return []
  }
}

function follow(ctx: Context, directories: readonly string[]): void {
  ctx.db.transaction(() => {
    for (const snapshot of ctx.db.snapshots(true)) {
      const state = stateOf(snapshot)
      const place = state && movedPlace(state, directories)
      if (place !== undefined) ctx.db.native.setRef(snapshot.nativeRef!, JSON.stringify({ ...state, place }))
    }
    followGoing(ctx.db, state => movedPlace(state, directories))
  })
}
