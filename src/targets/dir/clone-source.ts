/** Whether large files can be shared with the store by reflink, and under which names. Found out once per source. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../../model/entry.ts'
import { idToHex } from '../../model/id.ts'
import { addon } from '../../native/addon.ts'
import { processMark } from '../../store/process-mark.ts'

export interface CloneSource {
  paths(): { temporary: string; final(id: Id): string } | undefined
}

/** Of all sources of this thread: two captures at a time must not make their clones under one name. */
let made = 0

/** `directory`: the store's clones/, or undefined when clones are not wanted. */
export function createCloneSource(directory: string | undefined): CloneSource {
  let works: boolean | undefined
  return {
    paths() {
      if (directory === undefined) return undefined
      works ??= canClone(directory)
      if (!works) return undefined
      // Not imported: loading it takes time of each command, and few have files to clone.
      const { threadId } = process.getBuiltinModule('node:worker_threads')
      return {
        temporary: join(directory, `tmp-${processMark()}-${threadId}-${made++}`),
        final: id => join(directory, idToHex(id)),
      }
    },
  }
}

/** Tries it within the store. A target on another filesystem is noticed file by file (EXDEV). */
export function canClone(directory: string): boolean {
  let scratch: string | undefined
  try {
    scratch = mkdtempSync(join(directory, 'tmp-probe-'))
    const source = openSync(join(scratch, 'a'), 'w+')
    const destination = openSync(join(scratch, 'b'), 'w+')
    try {
      writeSync(source, Buffer.alloc(4096, 1))
      addon.cloneFd(source, destination)
      return true
    } finally {
      closeSync(source)
      closeSync(destination)
    }
  } catch {
    return false
  } finally {
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true })
  }
}
