/** When a run took its target away from its place, and what it had done there with names until then. */
import type { Raw } from '../model/raw-path.ts'
import type { Context } from './context.ts'
import { NamesOverTime } from './names-over-time.ts'

interface TargetLeft {
  /** Infinity: never. */
  at: number
  /** When it removed it where it was then. */
  goneAt: number
  /** Whether it had moved what was at the path, in the target or into it. */
  hasMoved(path: Raw): boolean
}

export function targetLeft({ db }: Context, run: string): TargetLeft {
  const names = new NamesOverTime()
  const hasMoved = (path: Raw) => names.namesOf(path).length > 0 || names.broughtBy(path) !== undefined
  let [left, gone] = [Infinity, Infinity]
  for (const change of db.events.nameChangesOf([run])) {
    const { op, path, to, at } = change
    if (left < Infinity) {
      if (op === 'delete' && path === '') gone = Math.min(gone, at)
    } else if (path === '' || (op === 'exchange' && to === '')) left = at
    else names.note({ ...change, by: run })
  }
  return { at: left, goneAt: gone, hasMoved }
}

/** When it put another directory in the place of the target; before anything, if it made a new one. */
export function replacedAt({ db }: Context, run: string): number {
  let last = -Infinity
  for (const { op, path, to, at } of db.events.nameChangesOf([run]))
    if (to === '' || (op === 'exchange' && path === '')) last = at
  return last
}
