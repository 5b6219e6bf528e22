/** Serves the operations from a process that has something else to do, and loads them when somebody asks: they come with zod. */
import { errorFrame, type Face, type LineHandler, type ServedTarget } from '../index.ts'

const nobody: LineHandler = { onLine: () => {}, onTooLong: () => {} }

export function lazyFace(served: ServedTarget, env: NodeJS.ProcessEnv): Face {
  let loaded: Promise<Face> | undefined
  const load = async (): Promise<Face> => {
    const [{ Service }, { faceOf }] = await Promise.all([import('./service.ts'), import('./session.ts')])
    return faceOf(new Service(served, env))
  }
  return {
    attend(client): LineHandler {
      loaded ??= load()
      const handler = loaded.then(
        face => face.attend(client),
        // What was installed has been replaced meanwhile, perhaps. The run goes on.
        error => {
          client.send(JSON.stringify(errorFrame(error)))
          client.end()
          return nobody
        },
      )
      return {
        onLine: line => void handler.then(each => each.onLine(line)),
        onTooLong: () => void handler.then(each => each.onTooLong()),
      }
    },
    async close() {
      const face = await loaded?.catch(() => undefined)
      await face?.close()
    },
  }
}
