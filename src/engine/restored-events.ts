/** What a restore changed stands among the events, too: as restored, by this process. */
import { isDamage } from '../errors/errors.ts'
import type { Change, Entry, Id } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import { type Context, ownRun } from './context.ts'

/** A directory that came or went as a whole is one. Further ones are not noted: the operation has both states. */
const MAX_EVENTS = 10_000

/** Between two states, so that what an interrupted restore had done before it was completed is among it. */
export function noteRestored(ctx: Context, before: Id, after: Id, movesHead: boolean): void {
  try {
    note(ctx, stateChanges(ctx.store, before, after), movesHead)
  } catch (error) {
    // What was restored is in place; that the state before cannot be read any more must not fail it.
    if (!isDamage(error)) throw error
  }
}

/** Where there is no state before. */
export function notePlanned(ctx: Context, { actions }: RestorePlan, movesHead: boolean): void {
  const after = (action: RestorePlan['actions'][number]) => (action.action === 'delete' ? undefined : action.entry)
  note(
    ctx,
    actions.map(action => ({ path: action.path, after: after(action) })),
    movesHead,
  )
}

/** `movesHead`: the state is that of HEAD now. Then a later snapshot, which is compared with HEAD, begins after it. */
function note(
  ctx: Context,
  changes: Iterable<Pick<Change, 'path' | 'within' | 'after'> & Partial<Pick<Change, 'before'>>>,
  movesHead: boolean,
): void {
  const events = new Map<Raw, NewEvent>()
  for (const { path, within, before, after } of changes) {
    const top = within ?? path
    const isDirectory = within !== undefined || (after ?? before)?.kind === 'dir'
    if (!events.has(top)) events.set(top, eventOf(ctx, top, after, isDirectory))
    if (events.size >= MAX_EVENTS) break
  }
  ctx.db.events.add(events.values())
  if (movesHead) ctx.db.events.setNextStart(ctx.db.events.newest())
}

/** `now`: it, or something in it, as it was restored. */
const eventOf = (ctx: Context, path: Raw, now: Entry | undefined, isDirectory: boolean): NewEvent => ({
  // Of a process of a run: then it is work of that.
  run: ownRun(ctx) ?? '',
  at: ctx.now(),
  op: 'restore',
  path,
  to: undefined,
  exec: 0,
  pid: process.pid,
  existed: now !== undefined,
  directory: isDirectory,
  size: !isDirectory && now?.kind === 'file' ? now.size : undefined,
})
