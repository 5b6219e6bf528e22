/**
 * The directory beside the target, or in our home, that a filesystem keeps states in: it may have been moved, with the
 * target or with the home, and where it was is written in every row.
 */
import { movedPlace } from '../backends/place.ts'
import { SavepointError } from '../errors/errors.ts'
import { whereFor } from './backend.ts'
import { type Context, withTimelineLock } from './context.ts'
import { followGoing, goingPlaces } from './native-going.ts'
import { stateOf } from './native-ref.ts'

/** Called before anything is read from there, or removed. What is nowhere stays as it is: it may not be mounted. */
export async function followPlaces(ctx: Context): Promise<void> {
  if (ctx.timelineId === '' || ctx.unwritable || ctx.db.damage() !== undefined) return
  const { directories } = whereFor(ctx.home, ctx.targetPath, ctx.timelineId)
  const places = [...ctx.db.native.places(), ...goingPlaces(ctx.db)]
  if (places.every(place => movedPlace({ place, name: '' }, directories) === undefined)) return
  try {
    await withTimelineLock(ctx, 'find moved snapshots', async () => follow(ctx, directories))
  } catch (error) {
    if (!(error instanceof SavepointError) || error.code === 'cancelled') throw error
    ctx.warn(`snapshots that the filesystem keeps were moved, and are not found now: ${error.message}`)
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
