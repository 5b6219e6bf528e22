/** Changes settings files of other programs: as a whole or not at all, with a copy of what was there. */
import { isUtf8 } from 'node:buffer'
import {
  chmodSync,
  existsSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errnoOf, SavepointError } from '../../errors/errors.ts'
import { makeDirs } from '../../index.ts'
import { randomHex } from '../../model/id.ts'
import type { Place } from './place.ts'

export interface SettingsEdit {
  place: Place
  action: 'created' | 'changed' | 'removed' | 'unchanged'
  /** What it was and will be; undefined is no file. */
  before: string | undefined
  after: string | undefined
  /** Copies of which nothing is left to bring back afterwards. */
  spent: string[]
}

const BACKUP = '.before-savepoint'
const MAX_BACKUPS = 100

/** What it would do to connect, or to take that away again; nothing is written. A file that says nothing afterwards goes. */
export function planEdit(place: Place, isRemoval: boolean): SettingsEdit {
  const { file, put, take, hasOurs } = place
  const before = readSettings(file)
  const text = before ?? ''
  const copies = isRemoval && before !== undefined ? copiesBefore(file, text, put) : []
  // One that was made when we were in it already, from another place, is not what was there before us.
  const former = copies.find(copy => !hasOurs(copy.text))?.text
  const changed = former ?? explained(file, () => (isRemoval ? take(text) : put(text)))
  if (changed === text && former === undefined) return { place, action: 'unchanged', before, after: before, spent: [] }
  const after = former === undefined && saysNothing(changed) ? undefined : changed
  const action = before === undefined ? 'created' : after === undefined ? 'removed' : 'changed'
  return { place, action, before, after, spent: copies.map(({ name }) => name) }
}

/** Copies beside the file from which it came to be what it is by our entry alone: nobody has changed anything since. */
function copiesBefore(file: string, text: string, put: Place['put']): { name: string; text: string }[] {
  const isFrom = (former: string): boolean => {
    try {
      return former !== text && put(former) === text
    } catch {
      return false // something else, that somebody has put there
    }
  }
  return backupsOf(realFile(file))
    .filter(existsSync)
    .map(name => ({ name, text: readFileSync(name, 'utf8') }))
    .filter(copy => isFrom(copy.text))
}

/** Answers the name of the copy of what was there, if one was made: what the file goes back to, or only we wrote, needs none. */
export function carryOut({
  place: { file, isInOwnDirectory, put },
  before,
  after,
  spent,
}: SettingsEdit): string | undefined {
  try {
    const real = realFile(file)
    const former = backupsOf(real).find(each => existsSync(each) && readFileSync(each, 'utf8') === after)
    const isOnlyOurs = after === undefined && before === put('')
    const backup = before === undefined || isOnlyOurs || former !== undefined ? undefined : backUp(real, before)
    if (after === undefined) rmSync(real)
    else write(real, after)
    for (const copy of former === undefined ? spent : [former, ...spent]) rmSync(copy, { force: true })
    // A link to elsewhere stays in it.
    if (after === undefined && isInOwnDirectory) removeIfEmpty(dirname(file))
    return backup
  } catch (error) {
    if (!errnoOf(error)) throw error
    throw new SavepointError('io.failed', `Cannot change ${file}: ${(error as Error).message}`, {
      hint: '--print shows what is to be written there',
      cause: error,
    })
  }
}

/** Through a link, as keepers of dotfiles have them: it must stay one, also where nothing is at its end yet. */
function realFile(file: string): string {
  if (existsSync(file)) return realpathSync(file)
  const target = linkTarget(file)
  // Whatever goes round in circles was refused when it was read.
  return target === undefined ? file : realFile(resolve(realpathSync(dirname(file)), target))
}

function linkTarget(file: string): string | undefined {
  try {
    return readlinkSync(file)
  } catch {
    return undefined // no link
  }
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Something else is in it.
  }
}

/** Settings may hold tokens: their mode stays. */
function write(file: string, text: string): void {
  makeDirs(dirname(file), 0o777)
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : undefined
  const temporary = `${file}.${randomHex(4)}.tmp`
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: mode ?? 0o666, flush: true })
    if (mode !== undefined) chmodSync(temporary, mode)
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

const backupsOf = (file: string): string[] =>
  Array.from({ length: MAX_BACKUPS }, (_, i) => `${file}${BACKUP}${i === 0 ? '' : `-${i + 1}`}`)

/** Never over an older one, which may be what the user wants back. */
function backUp(file: string, text: string): string {
  const name = backupsOf(file).find(each => !existsSync(each) || readFileSync(each, 'utf8') === text)
  if (name === undefined)
    throw new SavepointError('failed', `Cannot change ${file}: there are ${MAX_BACKUPS} copies of it already`, {
      hint: `Remove those that you do not need: ${file}${BACKUP}*`,
    })
  if (!existsSync(name)) {
    writeFileSync(name, text, { flag: 'wx', mode: 0o600, flush: true })
    chmodSync(name, statSync(file).mode & 0o777)
  }
  return name
}

/** An object without members says as much as no file, and some agents complain of it. */
const saysNothing = (text: string): boolean => /^\s*(\{\s*\})?\s*$/.test(text)

function readSettings(file: string): string | undefined {
  try {
    // A pipe would be read for ever.
    if (!statSync(file).isFile())
      throw new SavepointError('failed', `Cannot change ${file}: it is no file`, { hint: 'Move away what is there' })
    const bytes = readFileSync(file)
    if (!isUtf8(bytes)) throw new SavepointError('failed', `Cannot change ${file}: it is not UTF-8`)
    return bytes.toString()
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT') return undefined
    if (!errno) throw error
    throw new SavepointError('io.failed', `Cannot read ${file}: ${(error as Error).message}`, { cause: error })
  }
}

function explained<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new SavepointError('failed', `Cannot change ${file}: ${error.message}; nothing was written`, {
      hint: 'Mend the file, or add the server by hand',
      cause: error,
    })
  }
}
