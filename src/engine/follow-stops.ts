/**
 * Job control for the command of a run: when it stops, we stop, and when we go on, so does it. Ctrl-Z goes to both of us;
 * stopping at once would tell the shell that the job has stopped while the command may still be reading the terminal, and
 * would take the words that are typed next. And a command that stops itself alone would leave nobody at the terminal.
 */
import { readFileSync } from 'node:fs'

export interface StartedCommand {
  readonly pid: number | undefined
  /** It is stopped by us, for a moment. */
  readonly isFrozen?: boolean
  kill(signal: NodeJS.Signals): void
}

/** From before the command starts, so that no stop is missed, until the result is called. */
export function followStops(command: () => StartedCommand | undefined): () => void {
  const wait = () => {}
  const follow = () => {
    const child = command()
    if (!isStopped(child?.pid) || child?.isFrozen) return
    // Not SIGSTOP: where no shell could wake us again (an orphaned process group), the system ignores this one.
    process.off('SIGTSTP', wait)
    process.kill(process.pid, 'SIGTSTP')
    process.on('SIGTSTP', wait)
  }
  const goOn = () => {
    const child = command()
    if (isStopped(child?.pid)) child?.kill('SIGCONT')
  }
  process.on('SIGTSTP', wait)
  process.on('SIGCHLD', follow)
  process.on('SIGCONT', goOn)
  return () => {
    process.off('SIGTSTP', wait)
    process.off('SIGCHLD', follow)
    process.off('SIGCONT', goOn)
  }
}

/** By what the system says of it; the name in parentheses may hold anything. */
function isStopped(pid: number | undefined): boolean {
  try {
    return /\) T [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
