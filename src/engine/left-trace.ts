/**
 * What a run leaves running is traced until it ends, by a process of its own (left-trace-main.ts): whoever started the run does
 * not wait for that. Of such processes the commands are told, not what they change: that is no part of the run any more.
 */
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { RedactPatterns } from '../model/redact.ts'
import { isLocked, lockForChildren } from '../store/file-lock.ts'
import { type Context, RUN_VARIABLE } from './context.ts'
import { ifWritable } from './if-writable.ts'

/** What it is to record, for that process. */
export const LEFT_VARIABLE = 'SAVEPOINT_LEFT_TRACE'

export interface LeftRun {
  run: string
  home: string
  timelineDir: string
  targetPath: Raw
  /** Of `snapshots.min_free_bytes`. */
  floorBytes: number
  /** Sources of patterns, as of the start of the run. */
  redact: Record<'quick' | 'other', string[]>
}

/**
 * When all that was told until the end is written; `channel`: to its helper. Where nobody can be started they go on untraced, which the
 * mark tells.
 */
export function traceLeft(ctx: Context, run: string, patterns: RedactPatterns, channel: Socket): void {
  try {
    startRecorder(ctx, run, patterns, channel)
  } catch {
    // The run has ended as it did.
  }
  channel.destroy()
}

function startRecorder(ctx: Context, run: string, patterns: RedactPatterns, channel: Socket): void {
  const { home, timelineDir } = ctx
  const sourcesOf = (some: readonly RegExp[]) => some.map(({ source }) => source)
  const redact = { quick: sourcesOf(patterns.quick), other: sourcesOf(patterns.other) }
  const floorBytes = ctx.config.snapshots.min_free_bytes
  const left: LeftRun = { run, home, timelineDir, targetPath: rawFromBytes(ctx.targetPath), floorBytes, redact }
  using lock = ifWritable(() => {
    writeFileSync(markOf(ctx, run), '', { mode: 0o600 })
    return lockForChildren(markOf(ctx, run))
  })
  const file = ['./left-trace-main.js', './left-trace-main.ts']
    .map(name => new URL(name, import.meta.url))
    .find(existsSync)!
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', fileURLToPath(file)], {
    stdio: ['ignore', 'ignore', 'ignore', channel, lock?.fd ?? 'ignore'],
    // A session of its own: keys of our terminal, and its end, are not for it.
    detached: true,
    cwd: '/',
    env: { ...ctx.env, NODE_OPTIONS: undefined, [RUN_VARIABLE]: undefined, [LEFT_VARIABLE]: JSON.stringify(left) },
  })
  child.on('error', () => {})
  child.unref()
}

/** There as long as it is not done, and locked as long as somebody is at it. */
export const markOf = ({ timelineDir }: Pick<Context, 'timelineDir'>, run: string): string =>
  join(timelineDir, 'runs', run, 'left')

/** What became of the recording of what a run left running. cut: it has no end. */
export function leftOf(ctx: Pick<Context, 'timelineDir'>, run: string): 'going' | 'cut' | undefined {
  const isHeld = isLocked(markOf(ctx, run))
  return isHeld === undefined ? undefined : isHeld ? 'going' : 'cut'
}
