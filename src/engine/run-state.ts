/**
 * Whether a run that has no end yet still goes on. Its supervisor holds a lock for as long as it is at it: its number does not tell,
 * as in a container the next process has the same, and in another one nobody.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf, isUnwritable } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import { type FileLock, isLocked, lockHolder, tryLock } from '../store/file-lock.ts'
import { pidNamespace } from '../store/process-mark.ts'
import type { Context } from './context.ts'
import { startOf } from './process-tree.ts'

type Place = Pick<Context, 'timelineDir'>

const lockOf = ({ timelineDir }: Place, run: string): string => join(timelineDir, 'runs', run, 'lock')

/**
 * By its supervisor, from before others can see it until its end is recorded. It says which process that is. undefined: there is no
 * room for it, and the number has to do.
 */
export function holdRun(place: Place, run: string): FileLock | undefined {
  const file = lockOf(place, run)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    return tryLock(file, 'exclusive', `run ${pidNamespace()} ${startOf(process.pid)}`)
  } catch (error) {
    if (!isUnwritable(error)) throw error
    return undefined
  }
}

/** Of a run without an end. */
export const isGoingOn = (place: Place, { id, pid }: Run): boolean => isHeld(place, id) ?? isAlive(pid)

/** undefined: it was begun by an older Savepoint, or is not ours to look at. */
function isHeld(place: Place, run: string): boolean | undefined {
  try {
    return isLocked(lockOf(place, run))
  } catch (error) {
    if (!errnoOf(error)) throw error
    return undefined
  }
}

/** Of a run that goes on: its supervisor, as it is called here. undefined: another process may have its number. */
export function supervisorOf(place: Place, { id, pid }: Run): number | undefined {
  if (pid === undefined || isHeld(place, id) === undefined) return pid
  const is = `run ${pidNamespace()} ${startOf(pid)}`
  return lockHolder(lockOf(place, id))?.purpose === is ? pid : undefined
}

/** Its supervisor was killed: nobody will record its end, until `undo` or `rollback` takes what is there now for it. */
export const isInterrupted = (ctx: Pick<Context, 'timelineDir' | 'db'>, run: Run): boolean =>
  run.endedAt === undefined &&
  !isGoingOn(ctx, run) &&
  // It may have ended between the one look and the other.
  ctx.db.runOf(run.id)?.endedAt === undefined

const continuedKey = (run: string): string => `continues:${run}`

/** The run that was stopped for a rollback and of which this one is the new start. */
export const continuedOf = ({ db }: Pick<Context, 'db'>, run: string): string | undefined => db.meta(continuedKey(run))

/** A run that was stopped for a rollback and started again is two runs, each with its own snapshots around it. */
export const setContinued = (ctx: Context, run: string, before: string): void =>
  ctx.db.setMeta(continuedKey(run), before)

export function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0) && !isZombie(pid)
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}

/** It was killed, and nobody has asked how it ended. */
function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
