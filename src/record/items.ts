/** Every path of a recording, with what it was before and what it is when all has ended. */
import { readdirSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { isWithin, joinRaw, parentOf, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { type RecordLog, SEEN } from '../tracers/record-log.ts'
import { isInGit } from './bundle-paths.ts'
import { CHANGES, type Item } from './contents.ts'
import type { OpenedDirs } from './opened-dirs.ts'
import type { RecordingStart } from './recording.ts'
import { isFile, Looks, typeOf } from './states.ts'

/** Whether the command may have shut a directory behind it, or brought it along, shut before, with another one that it moved. */
export function isTheirs({ paths }: RecordLog, directory: Raw): boolean {
  if ((paths.get(directory)?.as ?? 0) & CHANGES) return true
  for (let above = parentOf(directory); above !== ''; above = parentOf(above)) {
    if ((paths.get(above)?.as ?? 0) & SEEN.moved) return true
  }
  return false
}

/** undefined, where that cannot be known. */
function namesIn(directory: Raw, opened: OpenedDirs): Buffer[] | undefined {
  try {
    return readdirSync(rawToBytes(directory), 'buffer')
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return opened.openAbove(joinRaw(directory, '')) ? namesIn(directory, opened) : undefined
  }
}

/** Sorted by their bytes. */
export function itemsOf(log: RecordLog, { ignored }: Pick<RecordingStart, 'ignored'>, opened: OpenedDirs): Item[] {
  const isIgnored = (path: Raw) => ignored.some(each => isWithin(path, each)) || isInGit(path)
  const looks = new Looks(opened)
  const items = new Map<Raw, Item>()
  const add = (path: Raw, seenAs: number, before: Item['before']): Item => {
    // Whatever was saved was about to be written, perhaps by another name of the same file; so it is with attributes, of whatever.
    const isWritten = before && ((isFile(before) && log.saved.has(before.identity)) || log.stamped.has(before.identity))
    const as = isWritten ? seenAs | SEEN.written : seenAs
    const now = before && (as & CHANGES) === 0 && looks.isStill(path, before) ? before : looks.stateAt(path)
    const item = { path, as, before, after: now === 'unseen' ? before : now, unseen: now === 'unseen' }
    items.set(path, item)
    return item
  }
  const walked = new Set<Raw>()
  const addBelow = (directory: Raw): void => {
    if (walked.has(directory)) return
    walked.add(directory)
    const names = namesIn(directory, opened)
    if (!names) items.get(directory)!.unseen = true
    for (const name of names ?? []) {
      const path = joinRaw(directory, rawFromBytes(name))
      if (isIgnored(path)) continue
      const known = items.get(path)
      // It came with the directory, whatever was there before.
      if (known) known.as |= SEEN.written
      const { after } = known ?? add(path, SEEN.written, undefined)
      if (after && typeOf(after) === 'directory') addBelow(path)
    }
  }
  for (const { path, as, before } of log.paths.values()) add(path, as, before)
  for (const { path, as } of log.paths.values()) {
    const { after } = items.get(path)!
    if (as & SEEN.moved && after && typeOf(after) === 'directory') addBelow(path)
  }
  return [...items.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}
