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

/**
 * undefined: somebody has removed it, because its dataset is there without it. Throws when that is missing, too, because its
 * pool may not be imported: what is taken for removed is forgotten, or believed to be purged. `orCopy`: what was received from
 * it elsewhere holds the same. With its mark, unless it may be a copy.
 */
export function locate(state: NativeState, orCopy: boolean): NativeState | undefined {
  const own = tellIfThere(state, nameOf(state), datasetOf(state.place))
  const here = own.works ? namesakesIn(own.stdout, state)[0] : undefined
  if (here && (here.isIt || !isTellable(state))) return at(state, { ...here, isIt: true })
  const pool = tellIfThere(state, '-r', poolOf(state.place))
  const near = pool.works ? namesakesIn(pool.stdout, state) : []
  // One in its own place counts as the original: its pool was received as a whole, by another one of its name.
  const found = near.find(({ isIt }) => isIt) ?? here ?? (orCopy ? near[0] : undefined)
  if (found) return at(state, found)
  const elsewhere = namesakesIn(tell().stdout, state).filter(({ isIt }) => isIt)
  const inOwnPool = elsewhere.length > 0 ? inPoolOf(state, elsewhere) : undefined
  const moved = inOwnPool ?? (orCopy ? elsewhere[0] : undefined)
  if (moved) return at(state, moved)
  requirePool(state)
  mountpointOf(state)
  if (elsewhere.length === 0) return undefined
  // Of one that was split off, perhaps, in which everything is the same, and which is somebody's backup.
  throw failed(`find ${nameOf(state)}`, `it is ${elsewhere[0]!.name} now: import its pool under its own name`)
}

interface Namesake {
  name: string
  /** When it was made, by the count of its pool: a copy that was received has another. */
  mark: string
  isIt: boolean
}

const isTellable = ({ mark, of }: NativeState): boolean => mark !== undefined || of !== undefined

/** Of what `tell` has told. */
function namesakesIn(told: Buffer, state: NativeState): Namesake[] {
  const lines = linesOf(told)
  const valuesOf = (wanted: string) =>
    new Map(lines.flatMap(([name, property, value]) => (property === wanted ? [[name!, value!]] : [])))
  const [guids, created] = [valuesOf('guid'), valuesOf('createtxg')]
  const guid = state.of?.split('/')[1]
  // A clone that is promoted takes snapshots along that are older than itself; what is received is younger than what it is in.
  const isOlder = (name: string, mark: string) => Number(mark) < Number(created.get(datasetOf(name)) ?? 0)
  const isIt = (name: string, mark: string) =>
    state.mark === undefined
      ? guid !== undefined && (guids.get(datasetOf(name)) === guid || isOlder(name, mark))
      : mark === state.mark
  return lines.flatMap(([name, property, mark]) =>
    property === 'createtxg' && name!.endsWith(`@${shortNameOf(state)}`)
      ? [{ name: name!, mark: mark!, isIt: isIt(name!, mark!) }]
      : [],
  )
}

const at = (state: NativeState, { name, mark, isIt }: Namesake): NativeState => ({
  ...state,
  place: name.slice(0, -state.name.length - 1),
  mark: isIt ? mark : state.mark,
})

/** Its pool may be imported under another name. */
function inPoolOf({ of }: NativeState, namesakes: readonly Namesake[]): Namesake | undefined {
  const guids = poolGuids()
  return of === undefined ? undefined : namesakes.find(({ name }) => guids?.get(poolOf(name)) === of.split('/')[0])
}

/** Of all, or of those that are named. */
const tell = (...names: string[]) =>
  runProgram('zfs', ['get', '-Hp', '-o', 'name,property,value', 'createtxg,guid', ...names])

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
  const isGone =
    runProgram('zfs', ['get', '-H', '-o', 'value', GONE, datasetOf(place)])
      .stdout.toString()
      .trim() === 'on'
  if (isGone) return
  const name = datasetOf(place)
  throw new SavepointError(
    'backend.failed',
    `Cannot find snapshots of ${name}: its pool is not imported, and the one of that name is another (import it; if it is gone for good, zfs set ${GONE}=on ${name})`,
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
