/** A snapshot that the filesystem keeps: taken at one moment, whatever the size. What it holds is read later. */
import { existsSync } from 'node:fs'
import { mountsBelow } from '../backends/mounts-below.ts'
import type { NativeBackend, NativeState } from '../backends/native-backend.ts'
import { isCutOff } from '../backends/run-program.ts'
import { readOutside } from '../files/outside-rules.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { type Chosen, forgetChoice } from './backend.ts'
import { checkLimit } from './capture-room.ts'
import { type Context, recordTarget } from './context.ts'
import { gitCacheOf, openGitCache } from './git-facts-cache.ts'
import { removeOwnGoing } from './native-going.ts'
import { forgetIntent, noteIntent, whileMaking } from './native-intents.ts'
import { type NativeRef, stateOf } from './native-ref.ts'
import type { TakeOptions } from './snapshot.ts'
import { noteMount } from './target-mount.ts'

/** Called under the timeline's lock. */
export async function takeNative(
  ctx: Context,
  { backend, place: chosen, of }: Chosen,
  options: TakeOptions,
): Promise<Snapshot> {
  // It takes a row of the store's disk, whatever is to stay free there: without room for that, nothing is made below.
  checkLimit(ctx)
  recordTarget(ctx)
  noteMount(ctx)
  const rules = await rulesOfNow(ctx)
  const id = ctx.db.newSnapshotId()
  const place = whereNoneIsMissed(ctx, chosen)
  const ref: NativeRef = {
    place,
    of,
    name: id,
    // Before it is taken: what changes from now on may, or may not, be in it.
    atMs: Date.now(),
    mounts: mountsBelow(ctx.targetPath),
    eventsAt: ctx.db.events.beginCapture(),
    ...rules,
  }
  removeOwnGoing(ctx)
  noteIntent(ctx.timelineDir, { backend: backend.name, place, of, name: id })
  let mark: string | undefined
  try {
    mark = whileMaking(ctx.timelineDir, id, () => backend.capture(ctx.targetPath, ref))
  } catch (error) {
    forgetChoice(ctx)
    // A program that was ended from outside may have made it nevertheless, or what it told so may. Otherwise nobody is to look for it.
    if (isThere(backend, ref)) removeOwnGoing(ctx)
    else if (!isCutOff(error)) forgetIntent(ctx.timelineDir, id)
    throw error
  }
  const madeBy = Date.now()
  failpoint('native:captured')
  const taken = ctx.db.transaction(() => {
    const snapshot = ctx.db.addSnapshot(
      {
        ...{ type: options.type, label: options.label, run: options.run, command: options.command },
        parent: ctx.db.head,
        createdAt: ctx.now(),
        root: UNREAD_ROOT,
        backend: backend.name,
        nativeRef: JSON.stringify({ ...ref, mark, madeBy } satisfies NativeRef),
        sizeDelta: 0,
        counts: { added: 0, modified: 0, deleted: 0 },
        ...{ files: 0, bytes: 0, skippedCount: 0, skipped: [], unsettled: false, runOnly: false, turn: options.turn },
      },
      id,
    )
    ctx.db.setHead(id)
    return snapshot
  })
  forgetIntent(ctx.timelineDir, id)
  return taken
}

/** What is to be captured, as far as what is captured does not say so itself. */
async function rulesOfNow(ctx: Context): Promise<Pick<NativeRef, 'rules' | 'outside'>> {
  const { exclude, max_file_bytes } = ctx.config.snapshots
  if (exclude.ignore_gitignore) return { rules: { exclude, max_file_bytes } }
  const cache = openGitCache(gitCacheOf(ctx))
  const outside = await readOutside(ctx.targetPath, cache.repositories(), { cache, env: ctx.env })
  if (outside !== 'too-large') return { rules: { exclude, max_file_bytes }, outside }
  // What is tracked would not be known: nothing of it is left out.
  return { rules: { exclude: { ...exclude, ignore_gitignore: true }, max_file_bytes } }
}

/**
 * A directory that is not there, with one in it that nobody has read, is elsewhere for a while. If we made it anew, that one
 * would seem to be removed.
 */
function whereNoneIsMissed(ctx: Context, chosen: string): string {
  const isMissed = (place: string) => ctx.db.native.unread().some(snapshot => stateOf(snapshot)?.place === place)
  let place = chosen
  while (place.startsWith('/') && !existsSync(place) && isMissed(place)) place += '+'
  return place
}

function isThere(backend: NativeBackend, state: NativeState): boolean {
  try {
    return backend.find(state) !== undefined
  } catch {
    return false
  }
}
