/** Calls an operation for a command: through the process that serves the target, or without one in the same way. */
import { findLiveProcesses, type OpenOptions } from '../index.ts'
import { askSocket, type Frame, NobodyThere } from './client.ts'
import type { Operation } from './operation.ts'
import { Service } from './service.ts'

/** A run of a program that uses the library answers only what is about itself. */
const isUnserved = ({ error }: Frame): boolean =>
  (error as { data?: { isUnserved?: boolean } } | undefined)?.data?.isUnserved === true

/** Returns the last frame; the others go to `onFrame`. */
export async function callLive(
  options: OpenOptions,
  operation: Operation,
  input: Frame,
  onFrame: (frame: Frame) => void,
): Promise<Frame> {
  const { signal = new AbortController().signal, env = process.env } = options
  const create = operation.opens?.(input).create
  const { sockets, foundAbove, ...served } = await findLiveProcesses({ ...options, create, withoutBrokenConfig: true })
  if (foundAbove && options.target === undefined)
    options.onNotice?.(`using the timeline of ${served.target} (above): paths start there, and all of it is meant`)
  for (const socket of sockets) {
    try {
      const last = await askSocket(
        socket,
        { ...input, op: operation.name },
        {
          onFrame,
          signal,
          isHarmless: operation.effect === 'read',
        },
      )
      if (!isUnserved(last)) return last
    } catch (error) {
      if (!(error instanceof NobodyThere)) throw error
    }
  }
  const service = new Service(served, env)
  let last: Frame = {}
  const frame = (text: string) => {
    last = JSON.parse(text) as Frame
    if (!('ok' in last || 'error' in last)) onFrame(last)
  }
  await service.call({}, operation.name, input, { frame, isCrowded: false, drained: async () => {}, signal })
  await service.close()
  return last
}
