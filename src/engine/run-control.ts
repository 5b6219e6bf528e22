/**
 * Opens the control socket of a run. Without one the run goes on all the same: others then change things themselves. A
 * connection that begins with CONTROL_HELLO is about the run itself; any other is for the operations that a face serves.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { SavepointError } from '../errors/errors.ts'
import type { Context } from './context.ts'
import { CONTROL_HELLO } from './control-frames.ts'
import { announceSocket, newSocketPath, removeSocket } from './control-place.ts'
import { attendControl, errorFrame, parseObject, SILENCE_MS } from './control-server.ts'
import { type Face, type LineClient, type LineHandler, type LineServer, serveLines } from './line-server.ts'
import type { RunSession } from './run-session.ts'

export interface RunControl {
  close(): Promise<void>
}

export async function openControl(ctx: Context, session: RunSession, face: Face | undefined): Promise<RunControl> {
  const { id } = session.run
  const answers = new Set<Promise<unknown>>()
  const control = (client: LineClient, isWaking: boolean) => {
    const leave = session.wakers.enter(isWaking)
    let work: Promise<unknown> = Promise.resolve()
    // What it asked for is stopped at a safe point then.
    client.signal.addEventListener('abort', () => void work.catch(() => {}).finally(leave))
    return attendControl(client, id, async asked => {
      const { carryOut } = await import('./control-operations.ts')
      // Who follows the run waits for its end: a stop is nothing to it.
      if ((asked.request as { op?: unknown }).op === 'trace') leave()
      const answer = carryOut(session, asked)
      work = answer
      answers.add(answer)
      return answer.finally(() => answers.delete(answer))
    })
  }
  let server: LineServer | undefined
  try {
    const socket = newSocketPath(ctx, id)
    server = await serveLines(socket, client => chosenBy(client, control, face?.attend ?? noFace))
    announceSocket(ctx, id, socket)
  } catch (error) {
    ctx.warn(`other commands cannot reach this run: ${(error as Error).message}`)
  }
  return {
    async close() {
      removeSocket(ctx, id)
      await Promise.allSettled(answers)
      await face?.close()
      // They are written by whoever waits for them, a moment later.
      await nextTurn()
      await server?.close()
    },
  }
}

/** The first line decides who answers. */
function chosenBy(
  client: LineClient,
  control: (client: LineClient, isWaking: boolean) => LineHandler,
  other: Face['attend'],
): LineHandler {
  let chosen: LineHandler | undefined
  client.setPatience(SILENCE_MS)
  return {
    onLine(line) {
      if (chosen) return chosen.onLine(line)
      const first = parseObject(line)
      if (first?.hello === CONTROL_HELLO) {
        chosen = control(client, first.wakes === true)
        return
      }
      chosen = other(client)
      chosen.onLine(line)
    },
    onTooLong: () => (chosen ?? other(client)).onTooLong(),
  }
}

/** A program that runs something with the library alone. */
function noFace(client: LineClient): LineHandler {
  const refuse = () => {
    const error = new SavepointError(
      'unsupported',
      'Cannot carry out operations here: this run was not started by `savepoint run`',
      { data: { isUnserved: true } },
    )
    client.send(JSON.stringify(errorFrame(error)))
    client.end()
  }
  return { onLine: refuse, onTooLong: refuse }
}
