/**
 * Job control for the command of a run: when it stops, we stop, and when we go on, so does it. Ctrl-Z goes to both of us;
 * stopping at once would tell the shell that the job has stopped while the command may still be reading the terminal, and
 * would take the words that are typed next. And a command that stops itself alone would leave nobody at the terminal.
 * Who is woken only to be asked something (wakers.ts) leaves the command as it is, and stops again afterwards.
 */
import { areKeysOurs } from './terminal-keys.ts'
import type { Wakers } from './wakers.ts'

/** How soon `fg` is noticed while we are awake to be asked something. */
const FETCH_MS = 100

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
export function followStops(command: () => StartedCommand | undefined, wakers: Wakers): StopFollower {
  let isClosed = false
  let isLooking = false
  let isWaking = false
  /** How it was when we were woken to be asked something. */
  let found = { areKeysOurs: false, isStopped: false }
  let fetching: NodeJS.Timeout | undefined
  let wasFetched = false

  const wait = () => {}
  const look = () => {
    if (isLooking) return
    isLooking = true
    // SIGCONT may have come together with what made us look, and says what a command that still is stopped means.
    setImmediate(() => {
      isLooking = false
      if (!isClosed && !isWaking && !wakers.isRoused) follow()
    })
  }
  const follow = () => {
    const child = command()
    if (!child?.isStopped || child.isFrozen) return
    // Not SIGSTOP: where no shell could wake us again (an orphaned process group), the system ignores this one.
    process.off('SIGTSTP', wait)
    process.kill(process.pid, 'SIGTSTP')
    process.on('SIGTSTP', wait)
  }
  const wake = () => {
    if (isWaking) return
    isWaking = true
    // At once: `fg` may come in the next moment.
    if (!wakers.isRoused) found = { areKeysOurs: areKeysOurs(), isStopped: command()?.isStopped === true }
    // Whoever woke us had connected before: in this turn it is accepted, in the next one it is heard.
    setImmediate(() =>
      setImmediate(() => {
        isWaking = false
        if (!isClosed) goOn()
      }),
    )
  }
  const goOn = () => {
    const isTheirs = wakers.takeCall()
    if (isTheirs && !wasFetched && !isFetched()) {
      if (!wakers.isRoused) fetching = setInterval(() => isFetched() && fetch(), FETCH_MS)
      wakers.isRoused = true
      if (!wakers.areLeft) rest()
      return
    }
    leave()
    const child = command()
    if (child?.isStopped) child.kill('SIGCONT')
  }
  /** The shell has made us its foreground job meanwhile (fg). It sends no signal to who goes on already. */
  const isFetched = () => wakers.isRoused && !found.areKeysOurs && areKeysOurs()
  const fetch = () => {
    wasFetched = true
    // To all of the job, which the shell takes for one that goes on; to us, too.
    process.kill(0, 'SIGCONT')
  }
  const leave = () => {
    wakers.isRoused = false
    clearInterval(fetching)
  }
  /** Stops again, unless the command goes on (fg wakes both). One that went on while we alone were stopped says nothing. */
  const rest = () => {
    if (isFetched()) fetch()
    if (!wakers.isRoused || wasFetched) {
      wasFetched = false
      return
    }
    leave()
    const isAsFound = found.isStopped ? command()?.isStopped : !areKeysOurs()
    // Who has stopped us before, even in an orphaned process group, knows how to wake us.
    if (isAsFound) process.kill(process.pid, 'SIGSTOP')
  }

  process.on('SIGTSTP', wait)
  process.on('SIGCHLD', look)
  process.on('SIGCONT', wake)
  wakers.onLeft = rest
  return {
    look,
    close() {
      isClosed = true
      leave()
      wakers.onLeft = () => {}
      process.off('SIGTSTP', wait)
      process.off('SIGCHLD', look)
      process.off('SIGCONT', wake)
    },
  }
}
