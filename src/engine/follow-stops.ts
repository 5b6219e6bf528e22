/**
 * Job control for the command of a run: when it stops, we stop, and when we go on, so does it. Ctrl-Z goes to both of us;
 * stopping at once would tell the shell that the job has stopped while the command may still be reading the terminal, and
 * would take the words that are typed next. And a command that stops itself alone would leave nobody at the terminal.
 */

export interface StartedCommand {
  readonly isStopped: boolean
  /** It is stopped by us, for a moment. */
  readonly isFrozen?: boolean
  kill(signal: NodeJS.Signals): void
}

export interface StopFollower {
  /** Looks whether the command has stopped; done by itself when a child changes its state. */
  look(): void
  close(): void
}

/** From before the command starts, so that no stop is missed, until it is closed. */
export function followStops(command: () => StartedCommand | undefined): StopFollower {
  const wait = () => {}
  const look = () => {
    const child = command()
    if (!child?.isStopped || child.isFrozen) return
    // Not SIGSTOP: where no shell could wake us again (an orphaned process group), the system ignores this one.
    process.off('SIGTSTP', wait)
    process.kill(process.pid, 'SIGTSTP')
    process.on('SIGTSTP', wait)
  }
  const goOn = () => {
    const child = command()
    if (child?.isStopped) child.kill('SIGCONT')
  }
  process.on('SIGTSTP', wait)
  process.on('SIGCHLD', look)
  process.on('SIGCONT', goOn)
  return {
    look,
    close() {
      process.off('SIGTSTP', wait)
      process.off('SIGCHLD', look)
      process.off('SIGCONT', goOn)
    },
  }
}
