/** Serves the operations from a process that has something else to do, and loads them when somebody asks: they come with zod. */
import type { Face, LineHandler, ServedTarget } from '../index.ts'

export function lazyFace(served: ServedTarget, env: NodeJS.ProcessEnv): Face {
  let loaded: Promise<Face> | undefined
  const load = async (): Promise<Face> => {
    const [{ Service }, { faceOf }] = await Promise.all([import('./service.ts'), import('./session.ts')])
    return faceOf(new Service(served, env))
  }
  return {
    attend(client): LineHandler {
      loaded ??= load()
      const handler = loaded.then(face => face.attend(client))
      return {
        onLine: line => void handler.then(each => each.onLine(line)),
        onTooLong: () => void handler.then(each => each.onTooLong()),
      }
    },
    async close() {
      await (await loaded)?.close()
    },
  }
}
