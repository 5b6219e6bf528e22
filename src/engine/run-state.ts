/** Whether a run that has no end yet still goes on. */
import { readFileSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import type { ListedRun } from './results.ts'

/** Its supervisor was killed: nobody will record its end, until `undo` or `rollback` takes what is there now for it. */
export const isInterrupted = (run: Run): boolean => run.endedAt === undefined && !isAlive(run.pid)

export const listRuns = (ctx: Context): ListedRun[] =>
  ctx.db
    .runs()
    .map(run => ({ ...run, isInterrupted: isInterrupted(run), continues: ctx.db.meta(continuedKey(run.id)) }))

const continuedKey = (run: string): string => `continues:${run}`

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
