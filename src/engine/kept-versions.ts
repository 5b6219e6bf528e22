/** Whose the files were that a run destroyed, and how they become snapshots. */
import type { Entry } from '../model/entry.ts'
import { sameContent } from '../store/tree-diff.ts'
import type { KeptFile } from '../tracers/kept-log.ts'
import type { Context } from './context.ts'
import type { Destroyed } from './kept-choice.ts'

export interface Version extends Destroyed {
  exec: number
  entry: Entry
  directory: KeptFile['directory']
}

/** On a machine that is busy, an end is noticed later than what comes after it. */
const NOTICED_MS = 2000

/** What becomes one snapshot. */
export interface Layer {
  /** All that differs from HEAD in it. */
  versions: Version[]
  /** What it is there for. */
  news: Version[]
  holdsOthers: boolean
}

/**
 * Oldest first: the last has the newest version of each path. What is somebody else's comes in snapshots of its own, which stay
 * longer; the one after it has that, too, so that it is not seen to come and go.
 */
export function layersOf(versions: Version[]): Layer[] {
  const levels: Version[][] = []
  for (const all of Map.groupBy(versions, ({ path }) => path).values()) {
    const different = withoutRepeats(all)
    for (const [i, version] of different.reverse().entries()) {
      levels[i] ??= []
      levels[i].push(version)
    }
  }
  return levels.reverse().flatMap(level => {
    const [others, own] = [true, false].map(isOthers => level.filter(version => version.isOthers === isOthers))
    return [
      { versions: others!, news: others!, holdsOthers: true },
      { versions: level, news: own!, holdsOthers: false },
    ].filter(({ news }) => news.length > 0)
  })
}

function withoutRepeats(versions: Version[]): Version[] {
  const different: Version[] = []
  for (const version of versions) {
    const last = different.at(-1)
    if (!last || !sameContent(last.entry, version.entry)) different.push({ ...version })
    else last.isOthers ||= version.isOthers
  }
  return different
}

/**
 * Of what has changed after the run had written it, who did so. A command that had ended when it was destroyed, a linker say, may
 * have written until its end what it had opened; one that went on is an agent, which writes at once. What the trace does not
 * have yet counts as somebody else's: such a version only stays longer.
 */
export function isOthers({ db }: Context, run: string, { whose, path, at, mtimeNs, exec }: KeptFile): boolean {
  if (whose !== 'unsure') return whose === 'others'
  const changedAt = Number(mtimeNs / 1_000_000n)
  const writer = db.trace.endOfWriter(run, path, changedAt)
  if (!writer || writer.pid === db.trace.execution(run, exec)?.pid) return true
  return changedAt > writer.end || writer.end > at + NOTICED_MS
}
