/**
 * A process that carries out operations one after the other, for a service (workers.ts) that must go on answering
 * meanwhile. Requests and frames are lines on descriptor 3. When the other end goes away, what is being done is stopped at a
 * safe point; what outlives its answer (spawn) is brought to its end. Standard output is that of the command which `exec` starts.
 */
import { Socket } from 'node:net'
import { lineReader, open } from '../index.ts'
import { monotonicMs } from '../model/monotonic.ts'
import { answerText, errorText, progressJson } from './frames.ts'
import type { Call } from './operation.ts'
import { startDirectory } from './start-directory.ts'
import { findOperation } from './table.ts'

const CHANNEL = 3
/** Of a request, with what the service adds. */
const MAX_LINE_BYTES = 4 * 1024 * 1024
/** More often nobody can read it. */
const PROGRESS_MS = 100

/** What a worker is asked. The input is checked. */
export interface WorkRequest {
  op: string
  input: Record<string, unknown>
  /** As `open` takes it. */
  target: string
  home: string
}

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true })
const outliving = new Set<Promise<unknown>>()
let cancellation: AbortController | undefined
let isGone = false

process.once('uncaughtException', error => {
  channel.write(`${errorText(error)}\n`, () => process.exit(1))
})
channel.on('error', () => {})
channel.on('close', leave)
channel.on('data', lineReader(MAX_LINE_BYTES, hear, leave))

function hear(line: string): void {
  const request = JSON.parse(line) as WorkRequest | { cancel: true }
  if ('cancel' in request) cancellation?.abort()
  else void work(request)
}

async function work(request: WorkRequest): Promise<void> {
  cancellation = new AbortController()
  const text = await carryOut(request, cancellation.signal).catch(errorText)
  cancellation = undefined
  if (!isGone) channel.write(`${text}\n`)
  else leave()
}

async function carryOut({ op, input, target, home }: WorkRequest, signal: AbortSignal): Promise<string> {
  const operation = findOperation(op)
  const send = (frame: Record<string, unknown>) => void (isGone || channel.write(`${JSON.stringify(frame)}\n`))
  const savepoint = await open({
    target: `dir:${target}`,
    // What is relative is so to the target, or to where a command starts.
    cwd: typeof input.cwd === 'string' ? startDirectory(target, input.cwd) : target,
    home,
    env: process.env,
    onNotice: notice => send({ notice }),
    onProgress: sparing(progress => send({ progress: progressJson(progress) })),
    onUnstoppable: unstoppable => send({ unstoppable }),
    // Of a command it is the command that is stopped: what it did has to be recorded.
    signal: operation.starts === undefined ? signal : undefined,
    ...operation.opens?.(input),
  })
  const outlasts: Promise<unknown>[] = []
  const call: Call = { send, signal, outlive: going => void outlasts.push(going) }
  try {
    return answerText(operation, await operation.handler(savepoint, input, call))
  } finally {
    const rest = Promise.allSettled(outlasts).then(() => savepoint.close())
    if (outlasts.length === 0) await rest
    else stayFor(rest)
  }
}

function stayFor(rest: Promise<unknown>): void {
  outliving.add(rest)
  rest.finally(() => {
    outliving.delete(rest)
    if (isGone) leave()
  })
}

/** Nobody asks any more. */
function leave(): void {
  isGone = true
  cancellation?.abort()
  if (cancellation === undefined && outliving.size === 0) process.exit(0)
}

function sparing<T>(say: (value: T) => void): (value: T) => void {
  let saidAt = 0
  return value => {
    const now = monotonicMs()
    if (now - saidAt < PROGRESS_MS) return
    saidAt = now
    say(value)
  }
}
