/**
 * States that a filesystem keeps of a directory, and that its history does not know: that was put back from an older copy. They
 * stay, as they may be all that is left of that time; but nobody may take them for gone.
 */
import { lstatSync } from 'node:fs'
import type { NativeBackend, Place } from '../backends/native-backend.ts'
import { nativeBackend, nativeBackends } from '../backends/select.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import type { OpenTimeline } from './all-timelines.ts'
import { knownPlace, whereFor } from './backend.ts'
import type { Context } from './context.ts'
import { statesToGo } from './native-going.ts'
import { stateOf } from './native-ref.ts'
import { absolutePath } from './target-registry.ts'
import type { StrayResult } from './verify-results.ts'

const LISTED = 10

interface Stray {
  backend: NativeBackend
  place: Place
  name: string
  byHand: string
}

/** Called under the timeline's lock. Where its filesystem does not answer, nothing is known of any. */
function strayStates(home: string, timeline: OpenTimeline): Stray[] {
  const { target, db } = timeline
  const known = new Set(
    [...db.snapshots(true).map(stateOf), ...statesToGo(target.directory, db)].map(state => state?.name),
  )
  return placesOf(home, timeline).flatMap(({ place, backend }) =>
    asFarAsTold(() => backend.statesIn(place)).flatMap(state =>
      known.has(state.name) ? [] : { backend, place, ...state },
    ),
  )
}

/** Those that its history knows, and those that would be used now: it may be older than all that a filesystem keeps. */
function placesOf(home: string, { target, db }: OpenTimeline): Pick<Stray, 'backend' | 'place'>[] {
  const last = knownPlace(db)
  const places = [
    ...db.snapshots(true).flatMap(row => {
      const [backend, state] = [nativeBackend(row.backend), stateOf(row)]
      return backend && state ? { backend, place: state.place } : []
    }),
    ...(last ? [last] : []),
    ...asFarAsTold(() => {
      const where = whereFor(home, target.path, target.id)
      return nativeBackends.flatMap(backend => backend.placesFor(target.path, where).map(place => ({ backend, place })))
    }),
  ]
  return [...new Map(places.map(each => [`${each.backend.name} ${each.place}`, each])).values()]
}

function asFarAsTold<T>(look: () => T[]): T[] {
  try {
    return look()
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    return []
  }
}

/** Those that have the path, or where that cannot be told now. */
export const straysWith = (home: string, timeline: OpenTimeline, path: Raw): Stray[] =>
  strayStates(home, timeline).filter(stray => mayHave(stray, path))

function mayHave({ backend, place, name }: Stray, path: Raw): boolean {
  try {
    const directory = backend.directoryOf({ place, name })
    if (directory === undefined) return true
    return lstatSync(absolutePath(Buffer.from(directory), path), { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    return errnoOf(error) !== 'ENOTDIR'
  }
}

/** For `verify`. Where its filesystem does not answer, none is known. */
export function strayResults(ctx: Context, timeline: OpenTimeline, isSaid: boolean): StrayResult[] {
  const strays = strayStates(ctx.home, timeline)
  if (isSaid) sayStray(ctx, timeline, strays)
  const target = shownTarget(timeline)
  return strays.map(stray => {
    const { backend, name, byHand } = stray
    return { target, backend: backend.name, name, where: whereOf(stray), byHand }
  })
}

const shownTarget = ({ target }: OpenTimeline): string => showPath(rawFromBytes(target.path))

export const whereOf = ({ backend, place, name }: Stray): string => backend.whereOf({ place, name })

export function sayStray(ctx: Context, timeline: OpenTimeline, strays: readonly Stray[], has = ''): void {
  if (strays.length === 0) return
  const listed = strays.slice(0, LISTED)
  const more =
    strays.length > LISTED ? `, and ${strays.length - LISTED} more that \`savepoint verify --json\` names` : ''
  const names = [...new Set(strays.map(({ backend }) => backend.name))].join(', ')
  const what = `${names} keeps ${plural('snapshot', strays.length)} of ${shownTarget(timeline)} that its history does not know${has}`
  const why = `was ${ctx.home} put back from an older copy?`
  ctx.warn(
    `${what}: ${listed.map(whereOf).join(', ')}${more} (${why}). They stay; for who does not need them: ${listed.map(({ byHand }) => byHand).join('; ')}`,
  )
}
