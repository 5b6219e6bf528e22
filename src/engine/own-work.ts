/** Which of the changes that were watched in the target are certainly not the run's, but ours: who only watches is told of all. */
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import { markOf } from '../targets/dir/stage-mark.ts'
import type { TraceEvent } from '../tracers/trace-event.ts'

/** `isStill`: no process of the run moves, because something is done with its files. */
export function isOwnWork(event: TraceEvent, targetPath: Buffer, isStill: boolean): boolean {
  if (event.type !== 'path' || !event.past) return false
  const root = `${rawFromBytes(targetPath)}/`
  return isStill || event.pid === process.pid || isStaged(event.path, root) || isStaged(event.to, root)
}

/** What a restore makes, and puts aside, lies there; from inside of the run it goes on meanwhile. */
function isStaged(path: Raw | undefined, root: Raw): boolean {
  if (!path?.startsWith(root)) return false
  const [name] = path.slice(root.length).split('/', 1)
  return markOf(name!) !== undefined
}
