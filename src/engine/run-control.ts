/** Opens the control socket of a run. Without one the run goes on all the same: others then change things themselves. */
import type { Context } from './context.ts'
import { announceSocket, newSocketPath, removeSocket } from './control-place.ts'
import { type ControlServer, serveControl } from './control-server.ts'
import type { RunSession } from './run-session.ts'

export interface RunControl {
  close(): Promise<void>
}

export async function openControl(ctx: Context, session: RunSession): Promise<RunControl> {
  const { id } = session.run
  let server: ControlServer | undefined
  try {
    const socket = newSocketPath(ctx, id)
    server = await serveControl(socket, id, async asked => {
      const { carryOut } = await import('./control-operations.ts')
      return carryOut(session, asked)
    })
    announceSocket(ctx, id, socket)
  } catch (error) {
    ctx.warn(`other commands cannot reach this run: ${(error as Error).message}`)
  }
  return {
    async close() {
      removeSocket(ctx, id)
      await server?.close()
    },
  }
}
