/** `savepoint daemon`: one process that serves the operations of a target on a socket, until it is told to end. */
import { claimDaemon, type OpenOptions, type ServedTarget, serveLines } from '../index.ts'
import { Service } from './service.ts'
import { faceOf, turnAway } from './session.ts'

export interface Daemon extends ServedTarget {
  socket: string
  /** For faces beside the socket: they call it as sockets do. */
  service: Service
  /** Answers what has to be completed, and takes the socket away. */
  close(): Promise<void>
}

export async function startDaemon(options: OpenOptions): Promise<Daemon> {
  const place = await claimDaemon(options)
  const { target, path, home, timeline, socket } = place
  const service = new Service({ target, path, home, timeline }, options.env ?? process.env)
  try {
    const face = faceOf(service)
    const server = await serveLines(socket, client => face.attend(client), turnAway)
    place.announce()
    return {
      ...service.served,
      socket,
      service,
      async close() {
        await face.close()
        await server.close()
        place.release()
      },
    }
  } catch (error) {
    place.release()
    throw error
  }
}
