/** How large the files of events are. A call is told before it is carried out, so this is looked up shortly afterwards. */
import { lstatSync } from 'node:fs'
import { joinRaw, type Raw, rawToBytes } from '../model/raw-path.ts'
import { kindOfEvent } from '../model/trace.ts'
import type { NewEvent } from '../timeline/event-rows.ts'

/** Looking must not slow down what is traced: of more at once, the sizes are not known. */
const MAX_LOOKS = 2000

export function noteSizes(target: Raw, events: NewEvent[]): void {
  let looks = 0
  for (const event of events) {
    const path = event.to ?? event.path
    if (event.directory || path === undefined || kindOfEvent(event) === 'deleted') continue
    if (++looks > MAX_LOOKS) return
    event.size = sizeOf(joinRaw(target, path))
  }
}

function sizeOf(path: Raw): number | undefined {
  try {
    const stat = lstatSync(rawToBytes(path), { throwIfNoEntry: false })
    return stat?.isFile() ? stat.size : undefined
  } catch {
    // A directory on the way that closed, or is none any more.
    return undefined
  }
}
