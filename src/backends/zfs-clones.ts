/** Clones of ZFS snapshots: ours, by which they are read where there is no `.zfs`, and those of others, which stay. */
import { mkdtempSync, readdirSync, realpathSync, rmdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import { isAbandoned, PROCESS_MARK, processMark } from '../store/process-mark.ts'
import type { NativeState, OpenState } from './native-backend.ts'
import { mustRun, runProgram } from './run-program.ts'
import { linesOf, nameOf, poolOf } from './zfs-names.ts'

const CLONE_PREFIX = 'savepoint-read-'
/** What they are mounted on. Its name says whose it is: one who is killed before there is a clone cannot remove it. */
const DIRECTORY_PREFIX = 'savepoint-zfs-'
const DIRECTORY = new RegExp(`^${DIRECTORY_PREFIX}${PROCESS_MARK}-`)
/** zfs-fuse is busy for a moment with what was just unmounted. */
const BUSY_TRIES = 20
const BUSY_WAIT_MS = 150

/** What a snapshot holds, through a clone that exists until it is closed. Called under the timeline's lock. */
export function openClone(state: NativeState): Omit<OpenState, 'isChanged'> {
  // Left by a process that was killed; we hold the lock of the timeline, so nobody reads them.
  dropClones(state.place)
  const directory = realpathSync(mkdtempSync(join(tmpdir(), `${DIRECTORY_PREFIX}${processMark()}-`)))
  const clone = `${poolOf(state.place)}/${CLONE_PREFIX}${randomHex(6)}`
  const close = () => {
    destroyClone(clone)
    try {
      rmdirSync(directory)
    } catch {}
  }
  try {
    const options = ['-o', 'readonly=on', '-o', `mountpoint=${directory}`]
    mustRun('read a ZFS snapshot', 'zfs', ['clone', ...options, nameOf(state), clone])
  } catch (error) {
    rmdirSync(directory)
    throw error
  }
  if (isMounted(directory)) return { path: Buffer.from(directory), mark: state.mark, close }
  close()
  throw new SavepointError('backend.failed', `Cannot read ${nameOf(state)}: its clone is not mounted where we see it`, {
    hint: 'In a container, or a mount namespace of its own? Run it outside of that. Nothing is lost',
  })
}

/**
 * Whether there is another filesystem than around it, for this process. Otherwise what we would take for the snapshot is a
 * directory of somebody, or an empty one, because it was mounted in another namespace. The dot has `.zfs` mount it.
 */
export function isMounted(directory: string): boolean {
  try {
    return statSync(`${directory}/.`).dev !== statSync(dirname(directory)).dev
  } catch {
    return false
  }
}

export interface Clone {
  name: string
  origin: string
  mountpoint: string
}

export function clonesIn(pool: string): Clone[] {
  const columns = ['-o', 'name,origin,mountpoint', '-t', 'filesystem']
  const listed = mustRun('list ZFS datasets', 'zfs', ['list', '-H', ...columns, '-r', pool])
  return linesOf(listed).map(([name, origin, mountpoint]) => ({
    name: name!,
    origin: origin!,
    mountpoint: mountpoint!,
  }))
}

export const isForReading = ({ name, origin }: Clone, place: string): boolean =>
  origin.startsWith(`${place}-`) && name.startsWith(`${poolOf(place)}/${CLONE_PREFIX}`)

export function dropClones(place: string): void {
  for (const clone of clonesIn(poolOf(place)).filter(each => isForReading(each, place))) {
    destroyClone(clone.name)
    try {
      rmdirSync(clone.mountpoint)
    } catch {}
  }
  removeAbandoned(tmpdir())
}

/** Only empty ones go: what is mounted on one is not looked into. */
function removeAbandoned(place: string): void {
  for (const name of readdirSync(place)) {
    const path = join(place, name)
    const mark = DIRECTORY.exec(name)
    try {
      if (mark && isAbandoned(path, mark) && statSync(path).uid === process.getuid?.()) rmdirSync(path)
    } catch {}
  }
}

/** What stays is dropped by the next one who reads or deletes. */
function destroyClone(clone: string): void {
  for (let tries = 0; tries < BUSY_TRIES; tries++) {
    const { works, why } = runProgram('zfs', ['destroy', '-f', clone])
    if (works || !/busy/.test(why)) return
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_WAIT_MS)
  }
}
