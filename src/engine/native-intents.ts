/**
 * States that a filesystem, or an archive, is about to keep: each is noted in a file before it is made, until its snapshot has a
 * row. Nobody waits until that is on the disk: after a power cut, a state may be left. The file is locked by whoever may still
 * make it, also by a program that goes on when we are killed.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NativeState } from '../backends/native-backend.ts'
import { handingDown } from '../backends/run-program.ts'
import { errnoOf } from '../errors/errors.ts'
import { isLocked, lockForChildren } from '../store/file-lock.ts'

export interface Going extends NativeState {
  backend: string
}

export interface Intent {
  file: string
  /** undefined: its process was killed before it was written. */
  state: Going | undefined
  /** Of somebody who may be at work: that it is not there says nothing. */
  isBeingMade: boolean
}

const PREFIX = 'native-intent'

const intentIn = (directory: string, name: string): string => join(directory, `${PREFIX}-${name}.json`)

/** Before it is made. Its row, once it has one, says that it stays; then the note goes. */
export const noteIntent = (directory: string, state: Going): void =>
  writeFileSync(intentIn(directory, state.name), JSON.stringify(state), { mode: 0o600 })

/** No later than that: should the row be lost with the database, what the filesystem keeps must not go with it. */
export const forgetIntent = (directory: string, name: string): void =>
  rmSync(intentIn(directory, name), { force: true })

/** `work` makes what is noted. What it starts is at work until it has ended, whatever becomes of us. */
export function whileMaking<T>(directory: string, name: string, work: () => T): T {
  using lock = lockForChildren(intentIn(directory, name))
  return handingDown(lock.fd, work)
}

export const intentsIn = (directory: string): Intent[] =>
  filesIn(directory).map(file => ({ file, state: stateIn(file), isBeingMade: isLocked(file) === true }))

function filesIn(directory: string): string[] {
  try {
    const names = readdirSync(directory).filter(name => name.startsWith(PREFIX))
    return names.map(name => join(directory, name))
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    return []
  }
}

function stateIn(file: string): Going | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
