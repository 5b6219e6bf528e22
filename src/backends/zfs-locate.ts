/**
 * Where a ZFS snapshot is by now. It goes along with a dataset that is renamed, to a clone that is promoted, and with a pool
 * that is imported under another name. What was sent and received elsewhere has its name, too: that is somebody's backup.
 */
import { SavepointError } from '../errors/errors.ts'
import type { NativeState } from './native-backend.ts'
import { failed, runProgram } from './run-program.ts'
import { datasetOf, linesOf, nameOf, poolOf, shortNameOf } from './zfs-names.ts'

/** A property that somebody gives a dataset of the same name, in another pool, to say that the one which was there is no more. */
const GONE = 'savepoint:gone'

/** A dataset keeps it for ever; what is received, or cloned, gets another one. undefined: nobody tells. */
export function guidOf(dataset: string): string | undefined {
  const { works, stdout } = runProgram('zfs', ['get', '-Hp', '-o', 'value', 'guid', dataset])
  return works ? stdout.toString().trim() : undefined
}

/** What snapshots of it are taken of. A pool that is split off has another guid, and in it everything has the same. */
export function origin(dataset: string): string | undefined {
  const guid = guidOf(dataset)
  const pool = poolGuids()?.get(dataset.split('/')[0]!)
  return guid !== undefined && pool !== undefined ? `${pool}/${guid}` : undefined
}

/** undefined: nobody tells. */
function poolGuids(): Map<string, string> | undefined {
  const { works, stdout } = runProgram('zpool', ['list', '-H', '-o', 'name,guid'])
  return works ? new Map(linesOf(stdout).map(([name, guid]) => [name!, guid!])) : undefined
}

/** Where one is by now. Where it is not found: what may be it, or a copy of somebody. */
export type Whereabouts = { found: NativeState } | { found: undefined; mayBe: string[] }

/**
 * undefined: somebody has removed it, because its dataset is there without it. Throws when that is missing, too, because its
 * pool may not be imported: what is taken for removed is forgotten, or believed to be purged; and when nobody can tell it from
 * a copy. `orCopy`: what was received from it elsewhere holds the same. With its mark, unless it may be a copy.
 */
export function locate(state: NativeState, orCopy: boolean): NativeState | undefined {
  const where = whereabouts(state, orCopy)
  if (where.found || where.mayBe.length === 0) return where.found
  throw failed(`find ${nameOf(state)}`, `${where.mayBe.join(', ')} may be it, or a copy`)
}

/** What is found without `orCopy` is it, and may be destroyed. Throws as `locate` does, where its dataset is missing. */
export function whereabouts(state: NativeState, orCopy: boolean): Whereabouts {
  const own = tellIfThere(state, nameOf(state), datasetOf(state.place))
  const here = own.works ? namesakesIn(own.stdout, state)[0] : undefined
  if (here && (here.isIt || !isTellable(state))) return at(state, { ...here, isIt: true })
  const pool = importedPoolOf(state)
  const told = tellIfThere(state, '-r', pool ?? poolOf(state.place))
  const near = told.works ? namesakesIn(told.stdout, state) : []
  // One in its own place counts as the original: its pool was received as a whole, by another one of its name.
  const found = near.find(({ isIt }) => isIt) ?? here ?? (orCopy ? near[0] : undefined)
  if (found) return at(state, found)
  // Where its own pool is there, nothing in another one is it: in one that was split off, everything is the same.
  const others = pool === undefined || orCopy ? namesakesIn(tell().stdout, state) : []
  const elsewhere = others.filter(({ isIt }) => isIt)
  const copy = orCopy ? (elsewhere[0] ?? others[0]) : undefined
  if (copy) return at(state, copy)
  const mayBe = isTellable(state) ? near.filter(each => pool !== undefined && each.mayBeIt) : near
  if (mayBe.length > 0) return { found: undefined, mayBe: mayBe.map(({ name }) => name) }
  if (pool === undefined) requirePool(state)
  mountpointOf({ ...state, place: inPool(state.place, pool) })
  return { found: undefined, mayBe: state.of === undefined ? elsewhere.map(({ name }) => name) : [] }
}

interface Namesake {
  name: string
  /** When it was made, by the count of its pool: a copy that was received has another. */
  mark: string
  isIt: boolean
  /** Or a copy: what it was taken of is no more. */
  mayBeIt: boolean
}

const isTellable = ({ mark, of }: NativeState): boolean => mark !== undefined || of !== undefined

/** Of what `tell` has told. */
function namesakesIn(told: Buffer, state: NativeState): Namesake[] {
  const lines = linesOf(told)
  const valuesOf = (wanted: string) =>
    new Map(lines.flatMap(([name, property, value]) => (property === wanted ? [[name!, value!]] : [])))
  const [guids, created, origins] = [valuesOf('guid'), valuesOf('createtxg'), valuesOf('origin')]
  const guid = state.of?.split('/')[1]
  const takenOf = [...guids].find(([name, each]) => each === guid && !name.includes('@'))?.[0]
  const history = takenOf === undefined ? new Map<string, number>() : historyOf(takenOf, origins, created)
  const isIt = (name: string, mark: string) =>
    state.mark === undefined ? Number(mark) <= (history.get(datasetOf(name)) ?? -1) : mark === state.mark
  // A clone that is promoted takes snapshots along that are older than itself; what is received is younger than what it is in.
  // But that may have been cloned, and the clone promoted.
  const isOlder = (name: string, mark: string) => Number(mark) < Number(created.get(datasetOf(name)) ?? 0)
  const mayBeIt = (name: string, mark: string) =>
    state.mark === undefined && takenOf === undefined && isOlder(name, mark)
  return lines.flatMap(([name, property, mark]) =>
    property === 'createtxg' && name!.endsWith(`@${shortNameOf(state)}`)
      ? [{ name: name!, mark: mark!, isIt: isIt(name!, mark!), mayBeIt: mayBeIt(name!, mark!) }]
      : [],
  )
}

/**
 * Where all snapshots of a dataset are: its own, and those that promoted clones took along. It is then itself a clone of the
 * newest of these. By dataset, up to which mark.
 */
function historyOf(
  dataset: string,
  origins: ReadonlyMap<string, string>,
  created: ReadonlyMap<string, string>,
): Map<string, number> {
  const history = new Map<string, number>()
  let [name, upTo] = [dataset, Number.POSITIVE_INFINITY]
  while (!history.has(name)) {
    history.set(name, upTo)
    const origin = origins.get(name)
    if (!origin?.includes('@')) break
    upTo = Math.min(upTo, Number(created.get(origin) ?? -1))
    name = datasetOf(origin)
  }
  return history
}

const at = (state: NativeState, { name, mark, isIt }: Namesake): Whereabouts => ({
  found: { ...state, place: name.slice(0, -state.name.length - 1), mark: isIt ? mark : state.mark },
})

/** How its own pool is called by now; undefined: it is not imported, or nobody tells which that is. */
function importedPoolOf({ of }: NativeState): string | undefined {
  const guid = of?.split('/')[0]
  return guid === undefined ? undefined : [...(poolGuids() ?? [])].find(([, each]) => each === guid)?.[0]
}

const inPool = (place: string, pool: string | undefined): string =>
  pool === undefined ? place : `${pool}${place.slice(poolOf(place).length)}`

/** Of all, or of those that are named. */
const tell = (...names: string[]) =>
  runProgram('zfs', ['get', '-Hp', '-o', 'name,property,value', 'createtxg,guid,origin', ...names])

/** Throws when `zfs` does not tell: only what it says not to exist is not there. */
function tellIfThere(state: NativeState, ...names: string[]) {
  const answer = tell(...names)
  const { works, why, isCut } = answer
  if (works || /does not exist/.test(why)) return answer
  throw failed(`find ${nameOf(state)}`, why, isCut ? { isCut } : undefined)
}

/** Another pool may have its name by now, and that this one has no such snapshot says nothing. */
function requirePool({ place, of }: NativeState): void {
  const [pool] = of?.split('/') ?? []
  if (pool === undefined) return
  const now = poolGuids()
  if (!now) throw failed(`find snapshots of ${datasetOf(place)}`, '`zpool list` does not tell which pools there are')
  if (!now.has(poolOf(place)) || [...now.values()].includes(pool)) return
  const name = datasetOf(place)
  const { works, stdout } = runProgram('zfs', ['get', '-H', '-o', 'value', GONE, name])
  if (stdout.toString().trim() === 'on') return
  const saysSo = works ? `zfs set ${GONE}=on ${name}` : `zfs create -p -o mountpoint=none -o ${GONE}=on ${name}`
  throw new SavepointError(
    'backend.failed',
    `Cannot find snapshots of ${name}: its pool is not imported, and the one of that name is another (import it; if it is gone for good, ${saysSo})`,
  )
}

export function mountpointOf({ place }: NativeState): string {
  const dataset = datasetOf(place)
  const { works, stdout, why, isCut } = runProgram('zfs', ['list', '-H', '-o', 'mountpoint', dataset])
  if (works) return stdout.toString().trim()
  if (isCut) throw failed(`find snapshots of ${dataset}`, why, { isCut })
  throw new SavepointError(
    'backend.failed',
    `Cannot find snapshots of ${dataset}: ${why} (import its pool, under its own name, with zpool import; if that is gone for good, make an empty dataset of this name)`,
  )
}
