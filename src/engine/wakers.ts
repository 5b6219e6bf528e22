/**
 * Who has woken a supervisor that had stopped with its command (Ctrl-Z), to have something done meanwhile. It connects and says so
 * before it sends SIGCONT: what comes of that one is no going on of the command, and the supervisor stops again when all have left.
 */
export class Wakers {
  private readonly clients = new Set<object>()
  private readonly waking = new Set<object>()
  private hasCalled = false
  /** We are awake for them only. Set by follow-stops.ts. */
  isRoused = false
  /** The last one has left. */
  onLeft: () => void = () => {}

  /**
   * A client, `isWaking` or not, of whom we take on something. Returns what says that it has left. One that came before we
   * were woken does not count: it may be of the command, and as stopped as that.
   */
  enter(isWaking: boolean): () => void {
    if (!isWaking && !this.isRoused) return () => {}
    const client = {}
    this.clients.add(client)
    if (isWaking) this.waking.add(client)
    this.hasCalled ||= isWaking
    return () => {
      this.waking.delete(client)
      if (this.clients.delete(client) && this.clients.size === 0) this.onLeft()
    }
  }

  get areLeft(): boolean {
    return this.clients.size > 0
  }

  /** Whether SIGCONT came from one of them, who may have left already. */
  takeCall(): boolean {
    const isTheirs = this.hasCalled || this.waking.size > 0
    this.hasCalled = false
    return isTheirs
  }
}
