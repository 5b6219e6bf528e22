/** What `verify` says of a snapshot that the store has lost parts of and its filesystem keeps, and how it is stored again from there. */
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { OpenTimeline } from './all-timelines.ts'
import { captureLive, type KeptState, type Live } from './capture-live.ts'
import { type Context, withTimelineLock } from './context.ts'
import { lostByStore } from './held-by-store.ts'
import { asThen, type Kept, keptOf, keptState } from './native-ref.ts'

/** How to have again what was lost of it; undefined: nobody else has it, or that cannot be told now. */
export function keptWayBack(ctx: Context, { target, db }: OpenTimeline, snapshot: Snapshot): string | undefined {
  const kept = keptOf(snapshot)
  if (!kept || !isThere(kept)) return undefined
  const where = db === ctx.db ? '' : ` in ${showPath(rawFromBytes(target.path))}`
  return `${kept.backend.name} keeps it, \`savepoint verify --repair\`${where} stores it again`
}

function isThere({ backend, ref }: Kept): boolean {
  try {
    return backend.find(ref) !== undefined
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    return false
  }
}

/** Of this timeline, after the index was made anew: what that does not find is stored. Says what it did; may be called again. */
export async function storeLostFromFilesystem(ctx: Context): Promise<string[]> {
  if (ctx.scratch !== undefined) return []
  return withTimelineLock(ctx, 'repair', async () => {
    const kept = ctx.db.snapshots(true).filter(snapshot => snapshot.root !== UNREAD_ROOT && keptOf(snapshot))
    const done: string[] = []
    // One after the other: what one has may be all that the next one lacks.
    for (const snapshot of lostByStore(ctx, kept))
      if (lostByStore(ctx, [snapshot]).length > 0) done.push(...(await storeAgain(ctx, snapshot, keptOf(snapshot)!)))
    return done
  })
}

async function storeAgain(ctx: Context, snapshot: Snapshot, kept: Kept): Promise<string[]> {
  const { backend, ref } = kept
  try {
    const state = backend.open(ref)
    if (!state) return []
    try {
      // What somebody has changed is not what was captured.
      if (state.isChanged()) return []
      const live = await readAgain(
        asThen(ctx, ref),
        snapshot,
        keptState(ref, state.path, () => undefined),
      )
      const isSame = lostByStore(ctx, [snapshot]).length === 0
      // Its lists are gone, and not all rules of then are known: as it is read now it is whole.
      if (!isSame)
        ctx.db.native.setRead(snapshot.id, { ...live, sizeDelta: live.newBytes, skippedCount: live.skipped.length })
      const how = isSame ? '' : ', by the rules of then'
      return [`what ${snapshot.id} had lost is stored again from ${backend.whereOf(ref)}${how}`]
    } finally {
      state.close()
    }
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    if ((error as SavepointError).code === 'cancelled') throw error
    ctx.warn(`${backend.whereOf(ref)} could not be stored again: ${(error as Error).message}`)
    return []
  }
}

/** What was captured then is, whatever rules say now, as far as the store still knows what that was. */
async function readAgain(ctx: Context, { root }: Snapshot, kept: KeptState): Promise<Live> {
  const options = { kept, afresh: true, ignoreFloor: true, phase: 'storing again' }
  try {
    return await captureLive(ctx, { ...options, override: [root] })
  } catch (error) {
    if (!isDamage(error)) throw error
    return captureLive(ctx, options)
  }
}
