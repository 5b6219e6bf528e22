/** A target as a process that serves it names it to others, and to processes that it starts. */
import { rawFromBytes, rawToText, showPath } from '../model/raw-path.ts'
import type { Context } from './context.ts'

export interface ServedTarget {
  /** For people. */
  target: string
  /** For `open`, as `home` is: whatever bytes it has, and wherever this process is. */
  path: string
  home: string
  timeline: string
}

export function servedBy({ targetPath, home, timelineId }: Context): ServedTarget {
  const raw = rawFromBytes(targetPath)
  return { target: showPath(raw), path: rawToText(raw), home, timeline: timelineId }
}
