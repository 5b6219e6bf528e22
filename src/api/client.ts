/** Asks the process that serves a target, over its socket. Needs neither the table nor zod. */
import { connect } from 'node:net'
import { cancelled } from '../errors/errors.ts'
import { lineReader, SavepointError, withSocketPath } from '../index.ts'

/** Of a line, as far as a server sends them. */
const MAX_LINE_BYTES = 96 * 1024 * 1024

/** For the answer to a cancellation of what only looks: whoever does not give it is stopped, or hangs. */
const PATIENCE_MS = 1000

export type Frame = Record<string, unknown>

/** Nobody answers there: nothing was done. */
export class NobodyThere extends Error {}

/**
 * Calls `onFrame` with each frame, and returns the last one, which has `ok` or `error`. `signal` asks to stop at a safe point;
 * the answer then says what became of it. `isHarmless`: it only looks, so that nobody has to know.
 */
export async function askSocket(
  socket: string,
  request: Frame,
  {
    onFrame,
    signal,
    isHarmless,
  }: { onFrame(frame: Frame): void; signal: AbortSignal | undefined; isHarmless: boolean },
): Promise<Frame> {
  const last = Promise.withResolvers<Frame>()
  let isConnected = false
  const connection = withSocketPath(socket, address => connect(address))
  let patience: NodeJS.Timeout | undefined
  const cancel = () => {
    connection.write('{"cancel":true}\n')
    if (isHarmless) patience = setTimeout(() => last.reject(cancelled()), PATIENCE_MS)
  }
  connection.on('connect', () => {
    isConnected = true
    connection.write(`${JSON.stringify(request)}\n`)
    signal?.addEventListener('abort', cancel)
    if (signal?.aborted) cancel()
  })
  const onLine = (line: string) => {
    const frame = JSON.parse(line) as Frame
    if ('ok' in frame || 'error' in frame) last.resolve(frame)
    else onFrame(frame)
  }
  connection.on(
    'data',
    lineReader(MAX_LINE_BYTES, onLine, () => connection.destroy()),
  )
  connection.on('error', () => {})
  connection.on('close', () => last.reject(isConnected ? lost(request) : new NobodyThere()))
  try {
    return await last.promise
  } finally {
    signal?.removeEventListener('abort', cancel)
    clearTimeout(patience)
    connection.destroy()
  }
}

const lost = ({ op }: Frame): SavepointError =>
  new SavepointError('failed', `Cannot tell what became of ${op}: the process that serves this target ended`, {
    hint: '`savepoint operations` shows whether it was carried out',
  })
