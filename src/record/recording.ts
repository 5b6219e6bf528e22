/**
 * A recording on disk, before it is a bundle: a directory in Savepoint's home with the log and the contents that the helper saved,
 * and two small files about the command. It can be finished by another process when the one that made it was killed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '../engine/run-state.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import type { Raw } from '../model/raw-path.ts'
import { writeByRename } from '../store/durable.ts'
import { type FileLock, isLocked, tryLock } from '../store/file-lock.ts'
import { makeDirs } from '../store/make-dirs.ts'

/** What is known when the command starts. Paths are raw strings. */
export interface RecordingStart {
  command: string[]
  cwd: Raw
  uid: number
  gid: number
  startedAt: number
  recorded: 'all' | 'changes'
  ignored: Raw[]
  output: string
  /** Of the repository that the command starts in. */
  head?: { root: Raw; commit: string | null }
  /** Who makes it. */
  pid: number
}

export interface RecordingEnd {
  code: number | null
  signal: string | null
  durationMs: number
  /** Processes of it that go on. */
  left: number
}

const START = 'start.json'
const END = 'end.json'
const LOCK = 'lock'
const ID_BYTES = 5

const placeIn = (home: string) => join(home, 'recordings')

/** It has to outlive us, not the machine. */
const write = (file: string, value: unknown): void => writeByRename(file, [Buffer.from(JSON.stringify(value))])

/**
 * By whoever makes it, or its bundle; undefined: somebody does. The number of a process would not tell: in a container the next one
 * has the same.
 */
export const holdRecording = (directory: string): FileLock | undefined =>
  tryLock(join(directory, LOCK), 'exclusive', 'record')

/** Makes the directory of a new one. */
export function startRecording(home: string, start: RecordingStart): { directory: string; held: FileLock } {
  const place = placeIn(home)
  makeDirs(place, 0o700)
  const directory = join(place, randomHex(ID_BYTES))
  mkdirSync(directory, { mode: 0o700 })
  const held = holdRecording(directory)!
  write(join(directory, START), start)
  return { directory, held }
}

export const endRecording = (directory: string, end: RecordingEnd): void => write(join(directory, END), end)

export const readStart = (directory: string): RecordingStart =>
  JSON.parse(readFileSync(join(directory, START), 'utf8')) as RecordingStart

/** undefined: whoever recorded it was killed before. */
export function readEnd(directory: string): RecordingEnd | undefined {
  const file = join(directory, END)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as RecordingEnd) : undefined
}

export const removeRecording = (directory: string): void => rmSync(directory, { recursive: true, force: true })

/** Those whose maker is dead, or had no room: they were never made into a whole bundle. */
export const abandonedRecordings = (home: string) =>
  recordingsIn(home).filter(each => !isHeld(each) && existsSync(join(each.directory, START)))

function recordingsIn(home: string): { directory: string; start: RecordingStart }[] {
  const place = placeIn(home)
  if (!existsSync(place)) return []
  return readdirSync(place).flatMap(name => {
    const directory = join(place, name)
    try {
      return [{ directory, start: readStart(directory) }]
    } catch (error) {
      // It begins, or was finished just now.
      if (errnoOf(error) === 'ENOENT') return []
      throw error
    }
  })
}

/** Leaves nothing there: whoever holds it may be removing it. */
const isHeld = ({ directory, start }: { directory: string; start: RecordingStart }): boolean =>
  // It was begun by an older Savepoint, or is being removed.
  isLocked(join(directory, LOCK)) ?? isAlive(start.pid)

const goesOn = (name: string): SavepointError =>
  new SavepointError('busy', `Cannot finish the recording ${name}: it goes on, or its bundle is being written`, {
    hint: 'Wait for that to end',
  })

/** Holds it: of two who want to finish it, one does. */
export function holdAbandoned(home: string, name: string): { directory: string; held: FileLock } {
  const found = recordingsIn(home).find(({ directory }) => directory.endsWith(`/${name}`))
  if (found) {
    const held = isHeld(found) ? undefined : holdRecording(found.directory)
    if (!held) throw goesOn(name)
    return { directory: found.directory, held }
  }
  const names = abandonedRecordings(home).map(({ directory }) => directory.split('/').at(-1)!)
  throw new SavepointError('failed', `Cannot finish the recording ${name}: there is no unfinished one of this name`, {
    hint: names.length === 0 ? 'All recordings have been finished' : `Unfinished: ${names.join(', ')}`,
  })
}
