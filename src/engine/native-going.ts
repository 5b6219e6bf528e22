/**
 * States that a filesystem keeps, or archives, and that are to go: noted before they are made, until their snapshot has a row
 * (native-intents.ts), and with the removal of that row. So a process that is killed leaves nothing behind for ever, and nothing
 * that we do not know is removed: it may be all that is left of a history that somebody lost.
 */
import { rmSync } from 'node:fs'
import type { NativeState, Removal } from '../backends/native-backend.ts'
import { isCutOff, stoppably } from '../backends/run-program.ts'
import { keeperOf } from '../backends/select.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { Context } from './context.ts'
import { type Going, intentsIn } from './native-intents.ts'
import { stateOf } from './native-ref.ts'
import type { RegisteredTarget } from './target-registry.ts'

const META = 'native_going'

const goingIn = (db: TimelineDb): Going[] => JSON.parse(db.meta(META) || '[]')

/** Called under the timeline's lock. Answers those that somebody may still be making, who outlives the one that noted it. */
function takeIntents(directory: string, db: TimelineDb): Going[] {
  const pending: Going[] = []
  for (const { file, state, isBeingMade } of intentsIn(directory)) {
    const toGo = state && !db.snapshot(state.name) ? [state] : []
    if (isBeingMade) {
      pending.push(...toGo)
      continue
    }
    noteGoing(db, toGo)
    rmSync(file, { force: true })
  }
  return pending
}

/** Which `removeGoing` would remove: of ours, although no row says so. */
export const statesToGo = (directory: string, db: TimelineDb): NativeState[] => [
  ...goingIn(db),
  ...intentsIn(directory).flatMap(({ state }) => (state && !db.snapshot(state.name) ? [state] : [])),
]

/** Each once, also where several rows named it: what is gone is not looked for again. */
function noteGoing(db: TimelineDb, going: readonly Going[]): void {
  if (going.length === 0) return
  const each = new Map([...goingIn(db), ...going].map(state => [`${state.place}/${state.name}`, state]))
  db.setMeta(META, JSON.stringify([...each.values()]))
}

function noteGone(db: TimelineDb, { place, name }: NativeState): void {
  const rest = goingIn(db).filter(each => each.place !== place || each.name !== name)
  if (rest.length > 0) db.setMeta(META, JSON.stringify(rest))
  else db.deleteMeta(META)
}

export const goingPlaces = (db: TimelineDb): string[] => goingIn(db).map(({ place }) => place)

/** `movedTo`: where one is now; undefined: where it was. */
export function followGoing(db: TimelineDb, movedTo: (state: NativeState) => string | undefined): void {
  const going = goingIn(db)
  if (going.length === 0) return
  db.setMeta(META, JSON.stringify(going.map(state => ({ ...state, place: movedTo(state) ?? state.place }))))
}

/** Of snapshots whose rows are removed, in the same transaction, afterwards. What another row names stays. */
export function noteForgotten(db: TimelineDb, forgotten: readonly Snapshot[]): void {
  const named = new Set(db.snapshots(true).map(({ nativeRef }) => nativeRef))
  const gone = forgotten.filter(({ nativeRef }) => !named.has(nativeRef))
  noteGoing(
    db,
    gone.flatMap(snapshot => {
      const state = stateOf(snapshot)
      if (!state) return []
      const { place, name, mark, of } = state
      return [{ backend: snapshot.backend, place, name, mark, of }]
    }),
  )
}

/** Whether `removeGoing` has anything to do. */
export const isAnyGoing = (directory: string, db: TimelineDb): boolean => statesToGo(directory, db).length > 0

/** One that was to go, and is not looked for any more. */
export interface Gone {
  backend: string
  name: string
  became: Removal
}

/**
 * Called under the timeline's lock. What cannot be removed now is left to the next time. `silent`: backends that did not
 * answer, which nobody waits for a second time.
 */
export function removeGoing(
  { directory, path }: Pick<RegisteredTarget, 'directory' | 'path'>,
  db: TimelineDb,
  warn: (text: string) => void,
  silent = new Set<string>(),
  onFailure = warn,
): Gone[] {
  for (const state of takeIntents(directory, db))
    onFailure(`${kindOf(state)} that nothing needs may come: who was to make ${state.name} is still at work`)
  const gone: Gone[] = []
  let untried = 0
  for (const state of goingIn(db)) {
    if (silent.has(state.backend)) {
      untried++
      continue
    }
    try {
      const became = stoppably(() => keeperOf(state.backend, directory)?.remove(state, path)) ?? 'removed'
      noteGone(db, state)
      gone.push({ backend: state.backend, name: state.name, became })
      if (typeof became === 'object') warn(leftText(state, became))
    } catch (error) {
      if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
      if (isCutOff(error)) silent.add(state.backend)
      onFailure(`${kindOf(state)} that nothing needs is still there: ${(error as Error).message}`)
    }
  }
  if (untried > 0)
    onFailure(`${untried} more that nothing needs were not tried: ${[...silent].join(', ')} does not answer`)
  return gone
}

const leftText = (state: Going, { mayBe, byHand }: Exclude<Removal, string>): string =>
  `${kindOf(state)} that nothing needs may be left: ${mayBe} is that of ${state.name}, or a copy of it, which nobody can tell now. It stays; if you do not need it: ${byHand}`

const kindOf = ({ backend }: Going): string => (backend === 'archive' ? 'an archive' : `a ${backend} snapshot`)

/** Snapshots that something beside the store keeps, too, also deleted ones: what `leaveNativeToStore` is about. */
export const keptBeside = (db: TimelineDb): Snapshot[] =>
  db.snapshots(true).filter(({ nativeRef }) => nativeRef !== undefined)

/**
 * What a filesystem keeps cannot be rewritten: the store has all that it needs of it, so it is to go. Called with everything
 * read, in the transaction that notes the purge: what is kept after that, and perhaps not read yet, stays.
 */
export function leaveNativeToStore(db: TimelineDb): void {
  const kept = keptBeside(db)
  for (const { id } of kept) db.native.setStored(id)
  noteForgotten(db, kept)
}

/** Of the timeline that is open. Called under its lock. */
export const removeOwnGoing = (ctx: Context): Gone[] =>
  removeGoing({ directory: ctx.timelineDir, path: ctx.targetPath }, ctx.db, ctx.warn)

/** Throws when something is certain to be there still. Called under the timeline's lock; may be called again. */
export const removeAllGoing = (ctx: Context): Gone[] =>
  removeGoing({ directory: ctx.timelineDir, path: ctx.targetPath }, ctx.db, ctx.warn, undefined, text => {
    throw new SavepointError('backend.failed', `Cannot complete the purge: ${text}`, {
      hint: 'Mend that; the next command completes it',
    })
  })
