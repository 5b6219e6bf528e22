/**
 * APFS of macOS: copies of the target whose files are clones, so that they cost no space until one of the two changes. They
 * take as long as the target has files, are not of one moment, and know neither hard links nor mounts. Untested on macOS: what
 * is tried is the same code, with outputs that macOS prints, on a filesystem of Linux that can clone.
 */
import { constants, copyFileSync, lstatSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { whyNotApfs } from './mac-volume.ts'
import type { NativeBackend, NativeState, Probe } from './native-backend.ts'
import {
  firstPlace,
  isPlaceAway,
  isThere,
  leftProbes,
  makePlace,
  no,
  OUTSIDE,
  removeIfEmpty,
  statesBelow,
  tidyIfPossible,
  whyNoText,
  whyNotMade,
} from './place.ts'
import { newProbeName } from './probe-name.ts'
import { fixFor, mustRun } from './run-program.ts'

/** In the same place: a copy has its name when it is whole. */
const PARTIAL_PREFIX = '.partial-'

const pathOf = ({ place, name }: NativeState): string => join(place, name)

export const apfs: NativeBackend = {
  name: 'apfs',
  wholeRollback: undefined,

  probe(target, { directories }) {
    const path = target.toString()
    const problem = whyNoText(target) ?? whyNotApfs(path)
    if (problem) return problem
    return firstPlace(path, directories, tryPlace)
  },

  placesFor: (target, { directories }) =>
    (whyNoText(target) ?? whyNotApfs(target.toString())) ? [] : [...directories],

  statesIn: place => statesBelow(place).map(({ name, path }) => ({ name, byHand: `rm -rf ${quoteWord(path)}` })),

  tidy(place) {
    for (const probe of leftProbes(place)) {
      rmSync(probe, { force: true })
      removeIfEmpty(dirname(probe))
    }
  },

  capture(target, state) {
    makePlace(state.place, 'clone the target')
    const partial = partialOf(state)
    try {
      mustRun('clone the target', 'cp', ['-cRp', '--', target.toString(), partial], true)
      renameSync(partial, pathOf(state))
      return undefined
    } catch (error) {
      rmSync(partial, { recursive: true, force: true })
      throw error
    }
  },

  open(state) {
    if (!apfs.find(state)) return undefined
    return { path: Buffer.from(pathOf(state)), mark: state.mark, isChanged: () => false, close() {} }
  },

  directoryOf: pathOf,

  isAway: (_, state) => isPlaceAway(state),

  // The files of a copy are others than those of the next one.
  differing: () => undefined,

  remove(state) {
    const there = [pathOf(state), partialOf(state)].filter(path => isThere(path))
    for (const path of there) rmSync(path, { recursive: true, force: true })
    removeIfEmpty(state.place)
    return there.length > 0 ? 'removed' : 'absent'
  },

  find(state) {
    if (isThere(pathOf(state))) return state
    if (isThere(state.place)) return undefined
    throw new SavepointError('backend.failed', `Cannot read ${pathOf(state)}: ${state.place} is not there`, {
      hint: 'Mount the volume that it is on. Nothing is lost',
    })
  },

  whereOf: pathOf,

  // What clones share is not told.
  usageBytes: () => undefined,
}

const partialOf = ({ place, name }: NativeState): string => join(place, `${PARTIAL_PREFIX}${name}`)

/** A clone across volumes is none, and `cp -c` would copy in silence: the system call itself is asked. */
function tryPlace(target: string, place: string): Probe {
  const [file, clone] = [newProbeName(), newProbeName()].map(name => join(place, `.${name}`))
  const problem = whyNotMade(place)
  if (problem !== undefined) return no(problem, fixFor(problem) ?? OUTSIDE)
  tidyIfPossible(() => apfs.tidy(place))
  try {
    if (lstatSync(place).dev !== statSync(target).dev) return no(`${place} is on another volume`, OUTSIDE)
    writeFileSync(file!, 'probe')
    copyFileSync(file!, clone!, constants.COPYFILE_FICLONE_FORCE)
    return { works: true, place }
  } catch (error) {
    return no(`a clone in ${place} failed (${errnoOf(error) ?? error})`, OUTSIDE)
  } finally {
    for (const path of [file!, clone!]) rmSync(path, { force: true })
    removeIfEmpty(place)
  }
}
