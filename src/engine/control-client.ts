/** Asks a live run for something, over its control socket. */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { SavepointError } from '../errors/errors.ts'
import { monotonicMs } from '../model/monotonic.ts'
import type { Context } from './context.ts'
import { CONTROL_HELLO, CONTROL_VERSION, type Frame, type Hello, lineReader, MAX_LINE_BYTES } from './control-frames.ts'
import { withSocketPath } from './control-place.ts'
import type { LiveRunEntry } from './live-runs.ts'
import { isStopped } from './process-tree.ts'
import { isAlive } from './run-state.ts'

/** A supervisor at work greets a little later; one that hangs, never. */
const GREETING_MS = 15_000
/** For one that was woken, to stop again. It does not if `fg` has come meanwhile, or its command is started again. */
const STOP_MS = 500
const LOOK_MS = 5
/** One that stops again before it has heard us, because its command has stopped as well, is woken again after so long. */
const WAKE_MS = 100

/** Nobody answers there: nothing was done. */
export class Unreachable extends Error {
  /** The run has ended meanwhile. */
  readonly isGone: boolean

  constructor(message: string, isGone = false) {
    super(message)
    this.isGone = isGone
  }
}

export interface Request {
  op: string
  [parameter: string]: unknown
}

type Listener = Pick<Context, 'notice' | 'progress' | 'signal' | 'onUnstoppable'> & { onEvent?(event: unknown): void }

/** Throws `Unreachable` when nothing was done, and what the run threw. `limitMs`: nobody waits longer for the answer. */
export async function askRun(
  run: LiveRunEntry,
  request: Request,
  listener: Listener,
  limitMs?: number,
): Promise<unknown> {
  if (run.socket === undefined) throw new Unreachable('it has no control socket')
  const { supervisor } = run
  const isSuspended = supervisor !== undefined && isStopped(supervisor)
  // It would be awake for as long as it is followed.
  if (isSuspended && request.op === 'trace') throw new Unreachable('it is suspended')
  // Said before it is connected: who has announced itself there, and never comes, would be taken for the next SIGCONT.
  if (isSuspended && !mayWake(supervisor)) throw new Unreachable('it is suspended, and not ours to wake')
  const answer = Promise.withResolvers<unknown>()
  const socket = withSocketPath(run.socket, address => connect(address))
  const hello = JSON.stringify({ hello: CONTROL_HELLO, wakes: isSuspended || undefined })
  socket.write(`${hello}\n`, () => isSuspended && wake(supervisor))
  const cancel = () => socket.write('{"cancel":true}\n')
  const giveUp = () => socket.destroy(new Error('it does not answer'))
  const greeting = setTimeout(giveUp, limitMs ?? GREETING_MS)
  const limit = limitMs === undefined ? undefined : setTimeout(giveUp, limitMs)
  const waking = isSuspended && setInterval(() => isStopped(supervisor) && wake(supervisor), WAKE_MS)
  let isAsked = false
  const onLine = (line: string) => {
    const frame = JSON.parse(line) as Hello | Frame
    if (isAsked) return receive(frame as Frame, listener, answer)
    clearTimeout(greeting)
    clearInterval(waking || undefined)
    if (!isGreeting(frame, run.id)) return void socket.destroy(new Error('it is another version of Savepoint'))
    isAsked = true
    socket.write(`${JSON.stringify(request)}\n`)
    listener.signal?.addEventListener('abort', cancel)
    if (listener.signal?.aborted) cancel()
  }
  socket.on(
    'data',
    lineReader(MAX_LINE_BYTES, onLine, () => socket.destroy(new Error('its answer is too long'))),
  )
  socket.on('error', error => answer.reject(isAsked ? lost(run) : new Unreachable(error.message)))
  socket.on('close', () => answer.reject(isAsked ? lost(run) : new Unreachable('it does not answer')))
  try {
    return await answer.promise
  } finally {
    clearTimeout(greeting)
    clearTimeout(limit)
    clearInterval(waking || undefined)
    listener.signal?.removeEventListener('abort', cancel)
    end(socket)
    if (isSuspended) await stopAgain(supervisor)
  }
}

/** Only the supervisor: what it supervises stays as it is. */
function wake(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // It was killed: the connection ends as well.
  }
}

function mayWake(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Returns when it has stopped again, or has ended: until then the shell takes its job for one that goes on. */
async function stopAgain(pid: number): Promise<void> {
  for (const until = monotonicMs() + STOP_MS; isAlive(pid) && !isStopped(pid) && monotonicMs() < until; )
    await pause(LOOK_MS)
}

function end(socket: Socket): void {
  socket.on('error', () => {})
  socket.destroy()
}

const isGreeting = (frame: object, run: string): boolean =>
  'savepoint' in frame && (frame as Hello).version === CONTROL_VERSION && (frame as Hello).run === run

function receive(frame: Frame, listener: Listener, answer: PromiseWithResolvers<unknown>): void {
  if ('notice' in frame) listener.notice(frame.notice)
  else if ('progress' in frame) listener.progress?.(frame.progress)
  else if ('unstoppable' in frame) listener.onUnstoppable?.(frame.unstoppable)
  else if ('event' in frame) listener.onEvent?.(frame.event)
  else if ('ok' in frame) answer.resolve(frame.result)
  else if ('gone' in frame) answer.reject(new Unreachable('it has ended', true))
  else {
    const { code, message, hint, data } = frame.error
    answer.reject(new SavepointError(code, message, { hint, data }))
  }
}

/** It had the request: what became of it is in the timeline. */
const lost = ({ id }: LiveRunEntry): SavepointError =>
  new SavepointError('failed', `Cannot tell what became of the request: ${id} ended before it answered`, {
    hint: '`savepoint operations` shows whether it was carried out',
  })
