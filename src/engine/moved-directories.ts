/**
 * What a run did to files by moving directories around them: what was in one before the run, or was made there by it, went along.
 * What somebody else put into it since, or made where it had been, did not.
 */
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { DirectoryMove } from '../timeline/event-rows.ts'

/** How far back the way of one path is followed. */
const MAX_ORIGINS = 100

export class MovedDirectories {
  private readonly origins = new Map<Raw, Set<Raw>>()
  private readonly left = new Set<Raw>()
  /** From outside of the target, or by going back to a snapshot: nobody knows what was in them. */
  private readonly whole = new Set<Raw>()

  constructor(moves: Iterable<DirectoryMove>) {
    for (const { op, path, to } of moves) {
      if (op === 'restore') this.whole.add(path!)
      else this.note(path, to)
      if (op === 'exchange') this.note(to, path)
    }
  }

  private note(from: Raw | undefined, to: Raw | undefined): void {
    if (from !== undefined) this.left.add(from)
    if (to === undefined) return
    if (from === undefined) this.whole.add(to)
    else this.origins.set(to, (this.origins.get(to) ?? new Set()).add(from))
  }

  /**
   * `isOwn`: what the run touched by its name. `wentAway`: was there before the run, and not after it. `isNow`: what was at the first
   * path is at the second, as when directories change places. The rest was not moved: calls are told before they are carried out,
   * and may fail.
   */
  have(
    path: Raw,
    isOwn: (path: Raw) => boolean,
    wentAway: (path: Raw) => boolean,
    isNow: (from: Raw, path: Raw) => boolean,
  ): boolean {
    if (isBelow(path, this.whole)) return true
    if (isBelow(path, this.left) && wentAway(path)) return true
    return this.originsOf(path).some(
      origin => isOwn(origin) || isBelow(origin, this.whole) || wentAway(origin) || isNow(origin, path),
    )
  }

  /** In whatever order the moves were: a run may repeat them, and that is not told again. */
  private originsOf(path: Raw): Raw[] {
    const found = new Set([path])
    for (const each of found) {
      for (const above of ancestorsOf(each))
        for (const origin of this.origins.get(above) ?? []) found.add(origin + each.slice(above.length))
      if (found.size > MAX_ORIGINS) break
    }
    found.delete(path)
    return [...found]
  }
}

function* ancestorsOf(path: Raw): Generator<Raw> {
  for (let above = parentOf(path); above !== ''; above = parentOf(above)) yield above
}

function isBelow(path: Raw, directories: ReadonlySet<Raw>): boolean {
  for (const above of ancestorsOf(path)) if (directories.has(above)) return true
  return false
}
