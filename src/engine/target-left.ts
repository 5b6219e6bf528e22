/** When a run took its target away from its place, and what it had done there with names until then. */
import type { Raw } from '../model/raw-path.ts'
import type { NameChange } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { NamesOverTime } from './names-over-time.ts'

interface TargetLeft {
  /** Infinity: never. */
  at: number
  /** When it removed it where it was then. */
  goneAt: number
  /** When others took the place of it. */
  cameAt: readonly number[]
  /** Whether it had moved what was at the path, in the target or into it. */
  hasMoved(path: Raw): boolean
}

export function targetLeft({ db }: Context, run: string): TargetLeft {
  const names = new NamesOverTime()
  const hasMoved = (path: Raw) => names.namesOf(path).length > 0 || names.broughtBy(path) !== undefined
  let [left, gone] = [Infinity, Infinity]
  const cameAt: number[] = []
  for (const change of db.events.nameChangesOf([run])) {
    const { op, path, to, at } = change
    if (isArrival(change)) cameAt.push(at)
    if (left < Infinity) {
      if (op === 'delete' && path === '') gone = Math.min(gone, at)
    } else if (path === '' || (op === 'exchange' && to === '')) left = at
    else names.note({ ...change, by: run })
  }
  return { at: left, goneAt: gone, cameAt, hasMoved }
}

const isArrival = ({ op, path, to }: NameChange): boolean => to === '' || (op === 'exchange' && path === '')

/** When it last put another directory in the place of the target; before anything, if it made a new one. */
export const replacedAt = (ctx: Context, run: string): number => targetLeft(ctx, run).cameAt.at(-1) ?? -Infinity
