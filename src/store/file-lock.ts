/**
 * Locks between processes by flock: the kernel drops them when their owner dies, so a dead owner's lock is simply free.
 * The file says who holds it, for the message.
 */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { cancelled, errnoOf, isUnwritable, SavepointError } from '../errors/errors.ts'
import { addon } from '../native/addon.ts'

const LOCK = { shared: 1, exclusive: 2, nonBlocking: 4 } as const
const POLL_MS = 25
/** Whoever waits for longer may want to know what for. */
const MOMENT_MS = 1000
/** What a lock file says has always this length. */
const SIGNATURE_BYTES = 128

export interface FileLock extends Disposable {
  release(): void
}

/** Tries once; undefined when somebody else holds it. */
export function tryLock(file: string, mode: 'shared' | 'exclusive', purpose: string): FileLock | undefined {
  const fd = openLock(file)
  if (fd === undefined) return held(() => {})
  if (!addon.flock(fd, LOCK[mode] | LOCK.nonBlocking)) {
    closeSync(fd)
    return undefined
  }
  if (mode === 'exclusive') signLock(fd, purpose)
  return held(() => closeSync(fd))
}

/** Whether somebody else holds it. undefined: there is no such file, and none is made. */
export function isLocked(file: string): boolean | undefined {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    return !addon.flock(fd, LOCK.shared | LOCK.nonBlocking)
  } finally {
    closeSync(fd)
  }
}

/**
 * Of a file that is there, and says something else than who holds it. Whoever is started with `fd` holds it, too: it is free when
 * all of them have ended.
 */
export function lockForChildren(file: string): { fd: number } & Disposable {
  const fd = openSync(file, 'r')
  addon.flock(fd, LOCK.exclusive | LOCK.nonBlocking)
  return { fd, [Symbol.dispose]: () => closeSync(fd) }
}

function held(drop: () => void): FileLock {
  let isHeld = true
  const release = () => {
    if (isHeld) drop()
    isHeld = false
  }
  return { release, [Symbol.dispose]: release }
}

/**
 * The kernel locks a file that is only open for reading as well. undefined: there is none and none can be made, so that
 * nobody who could change something can hold it either.
 */
function openLock(file: string): number | undefined {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600)
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
  try {
    return openSync(file, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Says who holds it. Only for the message of others: on a full disk the lock is held all the same, so that gc can run.
 * Written over, not truncated: ext4 waits for the disk when a file that was truncated is closed.
 */
function signLock(fd: number, purpose: string): void {
  try {
    writeSync(fd, `${`${process.pid} ${purpose}`.padEnd(SIGNATURE_BYTES - 1)}\n`, 0)
  } catch {}
}

/** How long to wait for a lock, and what ends the waiting before that. */
export interface LockWait {
  waitMs: number
  signal: AbortSignal | undefined
  /** Once, when it takes longer than a moment. */
  onWaiting?: (() => void) | undefined
}

/** Waits, then throws `busy` and says who holds the lock; `cancelled` as soon as the signal comes. */
export async function lockFile(
  file: string,
  mode: 'shared' | 'exclusive',
  purpose: string,
  { waitMs, signal, onWaiting }: LockWait,
): Promise<FileLock> {
  const deadline = Date.now() + waitMs
  let sayAt = onWaiting ? Date.now() + MOMENT_MS : Infinity
  for (;;) {
    const lock = tryLock(file, mode, purpose)
    if (lock) return lock
    if (signal?.aborted) throw cancelled()
    if (Date.now() >= deadline) throw busy(file, purpose)
    if (Date.now() >= sayAt) {
      sayAt = Infinity
      onWaiting!()
    }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}

function busy(file: string, purpose: string): SavepointError {
  const holder = lockHolder(file)
  return new SavepointError(
    'busy',
    `Cannot ${purpose}: ${holder ? `process ${holder.pid} is at work (${holder.purpose})` : 'another process is at work'}`,
    {
      hint: holder ? `Wait for it to end, or look at it with \`ps -p ${holder.pid}\`` : 'Try again in a moment',
      data: { holder },
    },
  )
}

export function lockHolder(file: string): { pid: number; purpose: string } | undefined {
  try {
    const [pid, ...purpose] = readFileSync(file, 'utf8').split('\n')[0]!.trim().split(' ')
    return pid ? { pid: Number(pid), purpose: purpose.join(' ') } : undefined
  } catch {
    return undefined
  }
}
