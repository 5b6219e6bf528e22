/** Where results go. A reader that went away (`| head`) is harmless: the rest is dropped and the exit code stays. */
export interface Output {
  write(chunk: string | Uint8Array): void
  /** Settles when the reader has caught up, so that a large result is not held in memory. */
  drained(): Promise<void>
  /** Settles when everything has left or failed. */
  flushed(): Promise<void>
  /** Nobody reads any more; long listings may stop. */
  readonly closed: boolean
  /** Why it is closed when that is not the reader's doing: a full disk, a terminal that is gone. */
  readonly failure: Error | undefined
}

/** `before` is called before each write: what else is on the terminal can make room. */
export function createOutput(stream: NodeJS.WritableStream, before = () => {}): Output {
  let closed = false
  let failure: Error | undefined
  stream.on('error', (error: NodeJS.ErrnoException) => {
    closed = true
    if (error.code !== 'EPIPE') failure ??= error
  })
  let waiting: Promise<void> | undefined
  return {
    get closed() {
      return closed
    },
    get failure() {
      return failure
    },
    write(chunk) {
      before()
      if (closed || stream.write(chunk) || waiting) return
      waiting = new Promise<void>(resolve => {
        const done = () => {
          stream.off('drain', done).off('error', done).off('close', done)
          waiting = undefined
          resolve()
        }
        stream.on('drain', done).on('error', done).on('close', done)
      })
    },
    drained: async () => waiting,
    flushed: () => new Promise<void>(resolve => void (closed ? resolve() : stream.write('', () => resolve()))),
  }
}
