/**
 * Tells what happens in a timeline as it happens, whoever does it: every process that works on it writes to its database, so
 * a change of the files of that is the sign to look for what is new in the log of events. A look from time to time covers a
 * filesystem that gives no signs, and a user who has no watches left (fs.inotify.max_user_instances).
 */
import { type FSWatcher, watch } from 'node:fs'
import { setImmediate as others, setTimeout as pause } from 'node:timers/promises'
import { SavepointError } from '../errors/errors.ts'
import type { Context } from './context.ts'
import { cursorOf, positionOf } from './event-cursor.ts'
import { chosenKinds, events } from './events.ts'
import type { TimelineEvent } from './results.ts'
import type { SubscribeOptions } from './savepoint.ts'

/** What comes at once is told at once. */
const GATHER_MS = 50
const LOOK_MS = 2000
/** So many are read at once; between two such pages, others of this process get their turn. */
const PAGE = 500

/** Returns when `signal` is aborted. Everything after `cursor` is told, each event once; without one, from now on. */
export async function subscribe(
  ctx: Context,
  onEvent: (event: TimelineEvent) => void,
  { signal, kind, cursor }: SubscribeOptions,
): Promise<void> {
  const { db } = ctx
  // What is wrong with the request is said before anything else.
  chosenKinds(kind)
  if (cursor !== undefined) positionOf(db.log.id, cursor)
  if (signal.aborted) return
  let place = cursor ?? cursorOf(db.log.id, db.log.newest())
  let { head } = db
  let sign = Promise.withResolvers<void>()
  const wake = () => sign.resolve()
  const watcher = watchIfPossible(ctx.timelineDir, wake)
  signal.addEventListener('abort', wake)
  // From here on: what happened before the watch began is known, or is found by the first look.
  onEvent({ kind: 'following', cursor: place })
  try {
    // Once also after the end is asked for: the process that tells this may be ending with the run whose end it is to tell.
    for (;;) {
      const isLast = signal.aborted
      let isMore: boolean
      do {
        // Of one moment: else HEAD could be told before its snapshot.
        const look = () => ({
          page: events(ctx, { kind, cursor: place, reverse: true, limit: PAGE }),
          headNow: db.head,
        })
        const { page, headNow } = db.atOneMoment(look)
        for (const event of page.events) onEvent(event)
        place = page.events.at(-1)?.cursor ?? place
        isMore = page.next !== undefined
        if (isMore) await others()
        else if (headNow !== head) onEvent({ kind: 'head', head: headNow })
        if (!isMore) head = headNow
      } while (isMore && !signal.aborted)
      if (isLast) break
      if (!db.isInPlace()) throw replaced()
      const timer = setTimeout(wake, LOOK_MS)
      await sign.promise
      clearTimeout(timer)
      sign = Promise.withResolvers<void>()
      if (!signal.aborted) await pause(GATHER_MS)
    }
  } finally {
    watcher?.close()
    signal.removeEventListener('abort', wake)
  }
}

/** Whatever comes now is written elsewhere: who hears nothing would take it that nothing happens. */
const replaced = () =>
  new SavepointError(
    'failed',
    'Cannot go on telling what happens: the timeline that was open is no longer the one in use',
    {
      hint: 'Subscribe again; `savepoint events` shows what happened meanwhile',
    },
  )

function watchIfPossible(directory: string, onSign: () => void): FSWatcher | undefined {
  try {
    return watch(directory, onSign).on('error', onSign)
  } catch {
    return undefined
  }
}
