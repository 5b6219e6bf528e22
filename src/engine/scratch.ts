/** The directory that stands in for a home while a question is answered (`provisional`), and what others left of theirs. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from './run-state.ts'

const PREFIX = 'savepoint-asking-'

/** Its name says whose it is: a process that is killed cannot remove it, so the next one does. */
export function makeScratch(place: string): string {
  removeAbandoned(place)
  return mkdtempSync(join(place, `${PREFIX}${process.pid}-`))
}

function removeAbandoned(place: string): void {
  for (const name of readdirSync(place)) {
    const pid = name.startsWith(PREFIX) && /^(\d+)-/.exec(name.slice(PREFIX.length))?.[1]
    if (!pid || isAlive(Number(pid))) continue
    const path = join(place, name)
    try {
      // The place is everybody's.
      if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true })
    } catch {
      // Somebody else may be removing it.
    }
  }
}
