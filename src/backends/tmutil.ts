/**
 * Local snapshots of Time Machine, of the whole volume that the target is on: at one moment, whatever the size. macOS names them
 * by their time, and may remove them when the disk gets full; so each has a note beside our other states, and is read by
 * the next command that needs it. Never chosen by `auto`: reading one needs root. Untested on macOS, as is apfs.ts.
 */
import { mkdtempSync, readFileSync, realpathSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { macVolumeOf, whyNotApfs } from './mac-volume.ts'
import type { NativeBackend, NativeState } from './native-backend.ts'
import { firstPlace, isPlaceAway, makePlace, no, removeIfEmpty, whyNoText } from './place.ts'
import { mustRun, runProgram } from './run-program.ts'

interface Note {
  date: string
  mountpoint: string
  target: string
}

const noteOf = ({ place, name }: NativeState): string => join(place, name)
/** Newer versions of macOS add ".local". */
const prefixOf = ({ date }: Note): string => `com.apple.TimeMachine.${date}`

export const tmutil: NativeBackend = {
  name: 'tmutil',
  wholeRollback: undefined,

  probe(target, { directories }) {
    const path = target.toString()
    const problem = whyNoText(target) ?? whyNotApfs(path)
    if (problem) return problem
    if (process.geteuid?.() !== 0) return no('only root can read local snapshots', 'Use apfs, or be root')
    try {
      deleteLocal(takeLocal())
    } catch (error) {
      return no((error as Error).message, 'See what `tmutil localsnapshot` says')
    }
    return firstPlace(path, directories, (_, place) => ({ works: true, place }))
  },

  placesFor: () => [],

  // macOS names them by their time: which one a probe has left is not told.
  tidy() {},

  // Those of the volume, of whomever: none of them is named after a timeline.
  statesIn: () => [],

  capture(target, state) {
    makePlace(state.place, 'take a local snapshot')
    const { mountpoint } = macVolumeOf(target.toString())!
    const note: Note = { date: takeLocal(), mountpoint, target: target.toString() }
    writeFileSync(noteOf(state), JSON.stringify(note), { mode: 0o600 })
    return undefined
  },

  open(state) {
    const note = readNote(state)
    if (!note) return undefined
    const found = findLocal(note)
    if (found === undefined) return undefined
    const directory = realpathSync(mkdtempSync(join(tmpdir(), 'savepoint-tmutil-')))
    const close = () => {
      runProgram('umount', [directory])
      rmdirSync(directory)
    }
    try {
      const options = ['-o', 'ro,nobrowse', '-s', found]
      mustRun('read a local snapshot', 'mount_apfs', [...options, note.mountpoint, directory])
    } catch (error) {
      rmdirSync(directory)
      throw error
    }
    return { path: Buffer.from(join(directory, withinVolume(note))), mark: state.mark, isChanged: () => false, close }
  },

  directoryOf: () => undefined,

  isAway: (_, state) => isPlaceAway(state),

  differing: () => undefined,

  remove(state) {
    const note = readNote(state)
    const isThere = note !== undefined && findLocal(note) !== undefined
    if (isThere) deleteLocal(note.date)
    rmSync(noteOf(state), { force: true })
    removeIfEmpty(state.place)
    return isThere ? 'removed' : 'absent'
  },

  find(state) {
    const note = readNote(state)
    return note && findLocal(note) !== undefined ? state : undefined
  },

  whereOf(state) {
    const note = readNote(state)
    return note ? prefixOf(note) : noteOf(state)
  },

  usageBytes: () => undefined,
}

/** "Created local snapshot with date: 2021-11-10-080134", after a line about how long it stays. */
function takeLocal(): string {
  const said = mustRun('take a local snapshot', 'tmutil', ['localsnapshot']).toString()
  const date = said.match(/with date: (\d{4}-\d{2}-\d{2}-\d{6})/)?.[1]
  if (date !== undefined) return date
  throw new SavepointError('backend.failed', 'Cannot take a local snapshot: tmutil does not say which one it took', {
    hint: '--backend cas keeps the snapshot in the store',
  })
}

const deleteLocal = (date: string): void =>
  void mustRun('delete a local snapshot', 'tmutil', ['deletelocalsnapshots', date])

/** One line for each, below a title. Throws when it cannot be told: what is not listed counts as gone. */
const findLocal = (note: Note): string | undefined =>
  mustRun('list local snapshots', 'tmutil', ['listlocalsnapshots', note.mountpoint])
    .toString()
    .split('\n')
    .find(line => line.startsWith(prefixOf(note)))

/** A path as people write it leads over a firmlink into the volume of data, where it is the same without the volume's. */
function withinVolume({ target, mountpoint }: Note): string {
  const prefix = mountpoint.endsWith('/') ? mountpoint : `${mountpoint}/`
  return target.startsWith(prefix) ? target.slice(prefix.length) : target.slice(1)
}

function readNote(state: NativeState): Note | undefined {
  try {
    return JSON.parse(readFileSync(noteOf(state), 'utf8'))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}
