/** Waits for something that nobody can stop, as long as whoever asked for it still wants to. */
import { cancelled } from '../errors/errors.ts'

export async function orAborted(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  const left = Promise.withResolvers<void>()
  const leave = () => left.resolve()
  signal?.addEventListener('abort', leave, { once: true })
  if (!signal?.aborted) await Promise.race([work, left.promise])
  signal?.removeEventListener('abort', leave)
  if (signal?.aborted) throw cancelled()
}
