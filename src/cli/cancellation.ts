/** Ctrl-C, SIGTERM and SIGHUP for work that must not stop in the middle: they ask it to stop at a safe point. */
export interface Cancellation {
  readonly signal: AbortSignal
  /** The signal that came, if any. */
  readonly cause: NodeJS.Signals | undefined
  /** Puts the default effect of the signals back. */
  dispose(): void
  /** Hands the signals to a child until the returned function is called: Ctrl-C is its alone, the others go on to it. */
  handTo(child: number | undefined): () => void
}

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const forwarded = ['SIGTERM', 'SIGHUP'] as const
const terminalSignals = ['SIGINT', 'SIGQUIT'] as const

export const signalNumbers: Partial<Record<NodeJS.Signals, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 }

export function createCancellation(onFirst: () => void): Cancellation {
  const controller = new AbortController()
  let cause: NodeJS.Signals | undefined
  const stop = (name: NodeJS.Signals) => {
    // The second one means it: whatever is open is recovered by the next command.
    if (cause) process.exit(128 + (signalNumbers[name] ?? 2))
    cause = name
    onFirst()
    controller.abort()
  }
  const listen = () => stopSignals.forEach(name => process.on(name, stop))
  const unlisten = () => stopSignals.forEach(name => process.off(name, stop))
  listen()
  return {
    signal: controller.signal,
    get cause() {
      return cause
    },
    dispose: unlisten,
    handTo(child) {
      const ignore = () => {}
      const forward = (name: NodeJS.Signals) => {
        try {
          if (child !== undefined) process.kill(child, name)
        } catch {
          // It has just ended.
        }
      }
      unlisten()
      terminalSignals.forEach(name => process.on(name, ignore))
      forwarded.forEach(name => process.on(name, forward))
      return () => {
        terminalSignals.forEach(name => process.off(name, ignore))
        forwarded.forEach(name => process.off(name, forward))
        listen()
      }
    },
  }
}
