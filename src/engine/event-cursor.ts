/** Cursors: where an event stands, as text that only we read. They stay good when events come and when old ones go. */
import { SavepointError } from '../errors/errors.ts'
import type { Position } from '../timeline/log-rows.ts'

export const cursorOf = (log: string, { file, seq }: Position): string =>
  `${log}-${file.toString(36)}-${seq.toString(36)}`

/** `log`: the one that is to be read. */
export function positionOf(log: string, cursor: string): Position {
  const [, of, file, seq] = /^([0-9a-f]+)-([0-9a-z]{1,10})-([0-9a-z]{1,10})$/.exec(cursor) ?? []
  if (of === undefined)
    throw new SavepointError('usage', `Cannot go on from "${cursor}": that is no cursor of events`, {
      hint: 'Take `next` of the page before, or `cursor` of an event',
    })
  if (of !== log)
    throw new SavepointError('usage', `Cannot go on from "${cursor}": it is of another directory's events`, {
      hint: 'It may also be from before the history of this one was repaired. Ask without a cursor',
    })
  return { file: Number.parseInt(file!, 36), seq: Number.parseInt(seq!, 36) }
}
