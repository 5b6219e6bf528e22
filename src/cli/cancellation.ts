/** Ctrl-C, SIGTERM and SIGHUP for work that must not stop in the middle: they ask it to stop at a safe point. */
import { isIgnored } from './inherited.ts'

export interface Cancellation {
  readonly signal: AbortSignal
  /** The signal that came, if any. */
  readonly cause: NodeJS.Signals | undefined
  /** From now on the signals have no effect here: they are a child's, and what follows it has to be done. */
  ignore(): void
  /** Puts the default effect of the signals back. */
  dispose(): void
}

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export const signalNumbers: Partial<Record<NodeJS.Signals, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

export function createCancellation(onFirst: (signal: NodeJS.Signals) => void): Cancellation {
  const controller = new AbortController()
  let cause: NodeJS.Signals | undefined
  let ignored = false
  const stop = (name: NodeJS.Signals) => {
    if (ignored || isIgnored(name)) return
    // The second one means it: whatever is open is recovered by the next command.
    if (cause) process.exit(128 + (signalNumbers[name] ?? 2))
    cause = name
    onFirst(name)
    controller.abort()
  }
  for (const name of stopSignals) process.on(name, stop)
  return {
    signal: controller.signal,
    get cause() {
      return cause
    },
    ignore() {
      ignored = true
    },
    dispose() {
      for (const name of stopSignals) process.off(name, stop)
    },
  }
}
