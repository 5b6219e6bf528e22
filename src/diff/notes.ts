import type { Entry, EntryKind } from '../model/entry.ts'
import { type ContentChange, isPatchable } from './content-change.ts'
import { quoteName } from './quote.ts'

const kindNames: Record<EntryKind, string> = {
  file: 'File',
  dir: 'Directory',
  link: 'Symbolic link',
  fifo: 'FIFO',
  char: 'Character device',
  block: 'Block device',
  unknown: 'Path that is not captured',
}

/**
 * Lines of prose for what a patch cannot express. `shown` says whether the patch shows something already: then a new
 * modification time goes without saying.
 */
export function notesOf(change: ContentChange, shown: boolean): string[] {
  const { before, after } = change
  // The target directory itself has no name in it.
  const name = quoteName(change.path) || '.'
  if (before && after && before.kind === after.kind) {
    const differences = metadataDifferences(before, after, shown && isPatchable(after.kind))
    if (change.from !== undefined && !isPatchable(after.kind)) differences.unshift(`was ${quoteName(change.from)}`)
    return differences.length > 0 ? [`${kindNames[after.kind]} ${name}: ${differences.join(', ')}`] : []
  }
  const notes: string[] = []
  if (before && !isPatchable(before.kind)) {
    notes.push(`${kindNames[before.kind]} ${quoteName(change.from ?? change.path)} ${goneWord(before)}`)
  }
  if (after && !isPatchable(after.kind)) notes.push(`${kindNames[after.kind]} ${name} ${cameWord(after)}`)
  return notes
}

const goneWord = (entry: Entry) => (entry.kind === 'unknown' ? `no longer there${reasonOf(entry)}` : 'deleted')
const cameWord = (entry: Entry) =>
  entry.kind === 'unknown' ? `now there${reasonOf(entry)}` : `added (mode ${modeText(entry)})`
const reasonOf = (entry: Entry) => (entry.reason ? ` (${entry.reason})` : '')
const modeText = (entry: Entry) => entry.mode.toString(8).padStart(3, '0')

function metadataDifferences(before: Entry, after: Entry, timeIsObvious: boolean): string[] {
  const differences: string[] = []
  if (before.mode !== after.mode && !isPatchable(after.kind)) {
    differences.push(`mode ${modeText(before)} -> ${modeText(after)}`)
  }
  if (before.uid !== after.uid || before.gid !== after.gid) {
    differences.push(`owner ${before.uid}:${before.gid} -> ${after.uid}:${after.gid}`)
  }
  if (before.rdevMajor !== after.rdevMajor || before.rdevMinor !== after.rdevMinor) {
    differences.push(`device ${before.rdevMajor}:${before.rdevMinor} -> ${after.rdevMajor}:${after.rdevMinor}`)
  }
  if (before.reason !== after.reason)
    differences.push(`${before.reason ?? 'captured'} -> ${after.reason ?? 'captured'}`)
  if (Buffer.compare(before.xattrs ?? Buffer.alloc(0), after.xattrs ?? Buffer.alloc(0)) !== 0) {
    differences.push('extended attributes changed')
  }
  if (!timeIsObvious && before.mtimeNs !== after.mtimeNs) differences.push('modification time changed')
  return differences
}
