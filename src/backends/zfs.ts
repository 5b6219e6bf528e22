/**
 * ZFS: snapshots of the dataset that is mounted at the target, named `dataset@savepoint-KEY-ID`, where the pool keeps them.
 * They are read through `.zfs` in the target; where that is missing (zfs-fuse), through a clone that exists meanwhile.
 * `zfs rollback` is used only for who asks for it: it destroys what came later.
 */
import { join } from 'node:path'
import { quoteWord } from '../model/shell-quote.ts'
import { mountedAt } from './mounts-below.ts'
import type { NativeBackend, NativeState, Removal } from './native-backend.ts'
import { filesystemType, no, tidyIfPossible, whyNoText } from './place.ts'
import { isLeftProbe, isProbe, newProbeName } from './probe-name.ts'
import { failed, fixFor, mustRun, runProgram } from './run-program.ts'
import { type Clone, clonesIn, dropClones, isForReading, isMounted, openClone } from './zfs-clones.ts'
import { differingInZfs } from './zfs-diff.ts'
import { locate, mountpointOf, origin, whereabouts } from './zfs-locate.ts'
import { datasetOf, linesOf, nameOf, placeIn, poolOf, shortNameOf } from './zfs-names.ts'

/** ZFS itself, and any filesystem in userspace: zfs-fuse is one. */
const MAY_BE_ZFS = new Set([0x2fc12fc1, 0x65735546])

/** A clock that is slowed down or hurried along moves by less meanwhile. */
const SLACK_MS = 1000

const isOurProbe = (name: string): boolean => name.includes('@savepoint-') && isProbe(name)

export const zfs: NativeBackend = {
  name: 'zfs',

  wholeRollback: {
    isAt(target, { place }) {
      const { stdout } = runProgram('zfs', ['list', '-H', '-o', 'mountpoint,mounted', datasetOf(place)])
      const [mountpoint, mounted] = linesOf(stdout)[0] ?? []
      const isMeant = mountpoint === target.toString() && mounted === 'yes' && MAY_BE_ZFS.has(typeOf(target))
      return isMeant && isShown(datasetOf(place), target)
    },
    later(state) {
      const dataset = datasetOf(state.place)
      const listed = mustRun('list ZFS snapshots', 'zfs', ['get', '-Hpr', '-o', 'name,value', 'createtxg', dataset])
      const made = new Map(linesOf(listed).map(([name, txg]) => [name!, Number(txg)]))
      const own = made.get(nameOf(state))
      if (own === undefined) throw failed(`find ${nameOf(state)}`, 'somebody has removed it')
      // Bookmarks go with them.
      const isOfDataset = (name: string) => [`${dataset}@`, `${dataset}#`].some(prefix => name.startsWith(prefix))
      const later = [...made].filter(([name, txg]) => isOfDataset(name) && txg > own)
      return later.sort(([, a], [, b]) => b - a).map(([name]) => name)
    },
    isNameOf: (name, state) => name.endsWith(`@${shortNameOf(state)}`),
    isInPlaceOf: (name, { place }) => name.includes(`${place.slice(place.indexOf('@'))}-`),
    isOfSavepoint: name => /@savepoint-.+-snap_\w+$/.test(name),
    isProbe: isOurProbe,
    madeOf({ place }, later) {
      const clones = clonesIn(poolOf(place)).filter(({ origin }) => later.includes(origin))
      return clones.filter(clone => !isForReading(clone, place)).map(({ name }) => name)
    },
    held: later => (later.length === 0 ? [] : heldOf(later)),
    destroy({ place }, name) {
      if (runProgram('zfs', ['destroy', name]).works) return
      dropClones(place)
      mustRun('roll back a ZFS dataset', 'zfs', ['destroy', name])
    },
    go(state) {
      // Not with -r: that would destroy what somebody has taken since.
      const { works, why, isCut } = runProgram('zfs', ['rollback', nameOf(state)])
      if (works) return
      if (isCut) throw failed('tell whether a ZFS dataset has gone back', why, { isDone: 'unknown' })
      const came = zfs.wholeRollback!.later(state)
      throw failed('roll back a ZFS dataset', came.length > 0 ? `${came.join(', ')} came meanwhile` : why)
    },
  },

  probe(target, { key }) {
    const path = target.toString()
    const problem = whyNoText(target)
    if (problem) return problem
    if (!MAY_BE_ZFS.has(typeOf(target))) return no('the target is not on ZFS', AS_DATASET)
    const { works, stdout, why } = runProgram('zfs', [
      'list',
      '-H',
      '-o',
      'name,mountpoint,mounted',
      '-t',
      'filesystem',
    ])
    if (!works) return no(why, whyNoList(why))
    // Several may be meant for the same place.
    const meant = linesOf(stdout).filter(([, point, mounted]) => point === path && mounted === 'yes')
    const dataset = meant.find(([name]) => isShown(name!, target))?.[0]
    if (dataset === undefined) return no('the target is not where a dataset is mounted', AS_DATASET)
    const place = placeIn(dataset, key)
    tidyIfPossible(() => zfs.tidy(place))
    const probe = `${place}-${newProbeName()}`
    const taken = runProgram('zfs', ['snapshot', probe])
    if (!taken.works)
      return no(`a snapshot failed: ${taken.why}`, fixFor(taken.why) ?? whenNotThere(taken.why) ?? ALLOW)
    const deleted = runProgram('zfs', ['destroy', probe])
    // `rollback --native` may have been faster.
    if (deleted.works || isAbsent(deleted.why)) return { works: true, place, of: origin(dataset) }
    return no(`${probe} could not be deleted: ${deleted.why}`, ALLOW)
  },

  placesFor(target, { key }) {
    // Without `zfs`: who asks next, asks that.
    const dataset = MAY_BE_ZFS.has(typeOf(target)) ? mountedAt(target) : undefined
    return dataset ? [placeIn(dataset, key)] : []
  },

  statesIn: place =>
    snapshotsBelow(place)
      .filter(name => name.startsWith(`${place}-`) && !isOurProbe(name))
      .map(name => ({ name: name.slice(place.length + 1), byHand: `zfs destroy ${quoteWord(name)}` })),

  tidy(place) {
    const probes = snapshotsBelow(place).filter(isOurProbe)
    const left = probes.filter(name => name.startsWith(`${datasetOf(place)}@`) && isLeftProbe(name))
    for (const name of left) mustRun('delete what a probe has left', 'zfs', ['destroy', name])
  },

  capture(target, state) {
    // What programs have stored to memory that is mapped is not in ZFS before.
    mustRun('take a ZFS snapshot', 'sync', ['-f', target.toString()])
    mustRun('take a ZFS snapshot', 'zfs', ['snapshot', nameOf(state)])
    // To ask for its mark would take longer than the snapshot. Until it is read, it is told by its dataset.
    return undefined
  },

  open(state) {
    const found = locate(state, true)
    if (!found) return undefined
    const inside = zfs.directoryOf(found)
    // By its mark it is known.
    const isChanged = () => (state.mark === undefined && isYounger(found) ? 'perhaps' : false)
    if (inside !== undefined) return { path: Buffer.from(inside), mark: found.mark, isChanged, close() {} }
    return { ...openClone(found), isChanged }
  },

  directoryOf(state) {
    const inside = join(mountpointOf(state), '.zfs', 'snapshot', shortNameOf(state))
    return isMounted(inside) ? inside : undefined
  },

  isAway(target, state) {
    return isDatasetAway(datasetOf(locateIfTold(state).place), target.toString())
  },

  differing(before, after) {
    const { works, stdout } = runProgram('zfs', ['diff', '-FH', nameOf(before), nameOf(after)])
    return works ? differingInZfs(stdout, mountpointOf(after)) : undefined
  },

  remove(state, target) {
    const where = whereabouts(state, false)
    if (!where.found) return leftIn(where.mayBe)
    const { found } = where
    dropClones(found.place)
    const clones = clonesIn(poolOf(found.place)).filter(({ origin }) => origin === nameOf(found))
    if (clones.length > 0) throw failed(`delete ${nameOf(found)}`, inTheWay(found, clones, target))
    const name = nameOf(found)
    const { works, why, isCut } = runProgram('zfs', ['destroy', name])
    if (works) return 'removed'
    const isHeld = !isCut && heldOf([name]).length > 0
    const held = `${name} is held (\`zfs holds ${name}\` says by whom, \`zfs release\` lets it go)`
    throw failed('delete a ZFS snapshot', isHeld ? held : why, isCut ? { isCut } : undefined)
  },

  find: (state, orCopy = false) => locate(state, orCopy),

  whereOf: nameOf,

  usageBytes(state) {
    const { works, stdout } = runProgram('zfs', ['get', '-Hp', '-o', 'value', 'used', nameOf(state)])
    const text = stdout.toString().trim()
    return works && /^\d+$/.test(text) ? Number(text) : undefined
  },
}

/** What is received elsewhere keeps the time of its original. */
function isYounger(state: NativeState): boolean {
  const { stdout } = runProgram('zfs', ['get', '-Hp', '-o', 'value', 'creation', nameOf(state)])
  const text = stdout.toString().trim()
  return state.madeBy !== undefined && /^\d+$/.test(text) && Number(text) * 1000 > state.madeBy + SLACK_MS
}

/** Of the dataset and those in it, of whomever. */
function snapshotsBelow(place: string): string[] {
  const columns = ['-H', '-o', 'name', '-t', 'snapshot']
  const { stdout, why, isCut } = runProgram('zfs', ['list', ...columns, '-r', datasetOf(place)])
  if (isCut) throw failed('list ZFS snapshots', why, { isCut })
  return linesOf(stdout).map(([name]) => name!)
}

function heldOf(names: readonly string[]): string[] {
  const { stdout } = runProgram('zfs', ['get', '-Hp', '-o', 'name,value', 'userrefs', ...names])
  return linesOf(stdout).flatMap(([name, holds]) => (Number(holds) > 0 ? [name!] : []))
}

function inTheWay({ place }: NativeState, clones: readonly Clone[], target: Buffer): string {
  const live = clones.find(({ mountpoint }) => mountpoint === target.toString())
  if (!live) return `it has a clone, to be destroyed or promoted first (${clones.map(({ name }) => name).join(', ')})`
  const others = [datasetOf(place), ...clones.filter(clone => clone !== live).map(({ name }) => name)].join(', ')
  return `the target is a clone of it: zfs promote ${live.name}; then it goes when you destroy what comes from it as well (${others})`
}

function leftIn(mayBe: readonly string[]): Removal {
  if (mayBe.length === 0) return 'absent'
  return { mayBe: mayBe.join(', '), byHand: mayBe.map(name => `zfs destroy ${name}`).join('; ') }
}

/** Another dataset, or a part of the same one, may be mounted over it: then both count as mounted. */
function isShown(dataset: string, target: Buffer): boolean {
  const shown = mountedAt(target)
  return shown === undefined || shown === dataset
}

const isAbsent = (why: string): boolean => /does not exist|could not find/.test(why)

const AS_DATASET = 'Make a dataset for it: see docs/backends.md'
function whenNotThere(why: string): string | undefined {
  if (/connect: permission denied/i.test(why)) return 'zfs-fuse lets only root ask it: be root'
  return why.includes('failed to initialize') ? 'Load the module (modprobe zfs), or start zfs-fuse' : undefined
}

const ALLOW = 'Be root, or let root say: zfs allow USER snapshot,destroy,mount,clone,create,rollback DATASET'

function whyNoList(why: string): string {
  if (why.includes('not installed')) return 'apt-get install zfsutils-linux'
  return whenNotThere(why) ?? (process.geteuid?.() === 0 ? 'See `zfs list`' : ALLOW)
}

/** Of one that is not mounted there: whether it would be, or its pool is not there. */
export function isDatasetAway(dataset: string, mountpoint: string): boolean {
  const { works, stdout } = runProgram('zfs', ['list', '-H', '-o', 'mountpoint', dataset])
  if (works) return linesOf(stdout)[0]?.[0] === mountpoint
  // Destroyed, where its pool is there without it.
  return !runProgram('zfs', ['list', '-H', '-o', 'name', dataset.split('/')[0]!]).works
}

function locateIfTold(state: NativeState): NativeState {
  try {
    return locate(state, false) ?? state
  } catch {
    return state
  }
}

function typeOf(path: Buffer): number {
  try {
    return filesystemType(path)
  } catch {
    return 0
  }
}
