import type { Savepoint } from '../../index.ts'
import type { Context } from '../context.ts'

/** What a listing says when there is nothing in it. `of`: it is of this run alone. */
export function noSnapshotsText(context: Context, savepoint: Savepoint, of?: string): string {
  const taken = savepoint.beingTaken()
  if (of !== undefined) return `No snapshots of ${of}${taken?.run === of ? ' yet: the first one is being taken' : ''}`
  if (!taken) return `No snapshots yet. Take one: ${context.style.command('snapshot')}`
  return `No snapshots yet: the first one is being taken${taken.run === undefined ? '' : `, before ${taken.run}`}`
}
