/** The directory that stands in for a home while a question is answered (`provisional`), and what others left of theirs. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAbandoned, PROCESS_MARK, processMark } from '../store/process-mark.ts'

const PREFIX = 'savepoint-asking-'
const NAME = new RegExp(`^${PREFIX}${PROCESS_MARK}-`)

/** Its name says whose it is: a process that is killed cannot remove it, so the next one does. */
export function makeScratch(place: string): string {
  removeAbandoned(place)
  return mkdtempSync(join(place, `${PREFIX}${processMark()}-`))
}

function removeAbandoned(place: string): void {
  for (const name of readdirSync(place)) {
    const path = join(place, name)
    const mark = NAME.exec(name)
    if (!mark || !isAbandoned(path, mark)) continue
    try {
      // The place is everybody's.
      if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true })
    } catch {
      // Somebody else may be removing it.
    }
  }
}
