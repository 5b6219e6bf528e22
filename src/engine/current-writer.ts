/** Who is at work in a timeline at this moment. */
import { join } from 'node:path'
import { lockHolder, tryLock } from '../store/file-lock.ts'
import { type Context, TAKING } from './context.ts'
import { liveRuns } from './live-runs.ts'
import type { BeingTaken, StatusResult } from './results.ts'

export function currentWriter(ctx: Context): StatusResult['writer'] {
  const file = join(ctx.timelineDir, 'lock')
  const lock = tryLock(file, 'shared', 'status')
  lock?.release()
  return lock ? undefined : lockHolder(file)
}

/** For whoever waits for it. */
export function sayWhoWrites(ctx: Context): void {
  const writer = currentWriter(ctx)
  if (!writer) return
  const run = beingTaken(ctx)?.run
  ctx.notice(
    run === undefined
      ? `waiting for process ${writer.pid}, which is at work (${writer.purpose})`
      : `waiting for ${run}: a snapshot of it is being taken`,
  )
}

export function beingTaken(ctx: Context): BeingTaken | undefined {
  const writer = currentWriter(ctx)
  if (writer?.purpose !== TAKING) return undefined
  return { run: liveRuns(ctx).find(({ pid }) => pid === writer.pid)?.id }
}
