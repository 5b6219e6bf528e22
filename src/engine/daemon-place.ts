/**
 * Which process serves a target, and where: `daemon.lock` of the timeline is held by the daemon as long as it lives, and
 * `daemon.json` names its socket, which lies where those of runs do.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { lockHolder, tryLock } from '../store/file-lock.ts'
import type { Context } from './context.ts'
import { newSocketPath } from './control-place.ts'
import { liveRuns } from './live-runs.ts'
import { closeContext, openContext } from './open.ts'
import { isStopped } from './process-tree.ts'
import type { OpenOptions } from './savepoint.ts'
import { type ServedTarget, servedBy } from './served-target.ts'

export interface DaemonPlace extends ServedTarget {
  /** Where the daemon is to listen. Nobody does. */
  socket: string
  /** Others find it. Call it when the socket answers. */
  announce(): void
  /** Takes everything away; twice is once. */
  release(): void
}

/** Makes this process the daemon of a target, whose timeline is made if there is none. Throws `busy` when there is one. */
export async function claimDaemon(options: OpenOptions): Promise<DaemonPlace> {
  const ctx = await openContext({ ...options, create: true })
  try {
    const socket = socketOf(ctx)
    const lock = tryLock(lockOf(ctx), 'exclusive', 'serve')
    if (!lock) throw alreadyServed(ctx)
    // Of one that was killed: the lock says that it is dead.
    rmSync(socket, { force: true })
    const place = placeOf(ctx)
    let isHeld = true
    return {
      ...servedBy(ctx),
      socket,
      announce: () => writeFileSync(place, `${JSON.stringify({ socket })}\n`, { mode: 0o600 }),
      release() {
        if (!isHeld) return
        isHeld = false
        for (const file of [place, socket]) removeIfPossible(file)
        lock.release()
      },
    }
  } finally {
    closeContext(ctx)
  }
}

/** Where the home has become read-only it stays: nobody answers there, which is how others know. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch (error) {
    if (!errnoOf(error)) throw error
  }
}

/** A directory that others can enter is not used. */
function socketOf(ctx: Context): string {
  try {
    return newSocketPath(ctx, `daemon-${ctx.timelineId}`)
  } catch (cause) {
    throw new SavepointError('failed', `Cannot serve ${servedBy(ctx).target}: ${(cause as Error).message}`, {
      hint: 'Make it yours alone: chmod 700',
      cause,
    })
  }
}

const lockOf = ({ timelineDir }: Pick<Context, 'timelineDir'>): string => join(timelineDir, 'daemon.lock')

const placeOf = ({ timelineDir }: Pick<Context, 'timelineDir'>): string => join(timelineDir, 'daemon.json')

function alreadyServed(ctx: Context): SavepointError {
  const holder = lockHolder(lockOf(ctx))
  const who = holder ? `process ${holder.pid} does that already` : 'another process does that already'
  return new SavepointError('busy', `Cannot serve ${servedBy(ctx).target}: ${who}`, {
    hint: holder ? `Use it with \`savepoint ctl OP\`, or end it with \`kill ${holder.pid}\`` : 'Use `savepoint ctl OP`',
    data: { holder },
  })
}

export interface LiveProcesses extends ServedTarget {
  /** Of the daemon, then of runs that can be asked, in the order of their beginning. One of them may be dead: then nobody answers. */
  sockets: string[]
  /** It begins above the directory that was asked in. */
  foundAbove: boolean
}

/** Who serves a target at present. */
export async function findLiveProcesses(options: OpenOptions): Promise<LiveProcesses> {
  const ctx = await openContext(options)
  try {
    // One that is suspended is woken for what changes something, and serves nobody else.
    const awake = liveRuns(ctx).filter(({ supervisor }) => supervisor === undefined || !isStopped(supervisor))
    const sockets = [daemonSocket(ctx), ...awake.map(({ socket }) => socket)]
    const found = sockets.filter(socket => socket !== undefined)
    return { ...servedBy(ctx), sockets: found, foundAbove: ctx.subdirectory !== '' }
  } finally {
    closeContext(ctx)
  }
}

function daemonSocket(ctx: Context): string | undefined {
  try {
    const { socket } = JSON.parse(readFileSync(placeOf(ctx), 'utf8')) as { socket?: unknown }
    return typeof socket === 'string' ? socket : undefined
  } catch (error) {
    // There is none, or it is being announced.
    if (errnoOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}
