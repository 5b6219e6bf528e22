/** An open timeline for those who only look for a moment. It is opened anew after a pause, so that nothing old stays in use. */
import { errorCatalogue, type OpenOptions, open, type Savepoint, SavepointError, type ServedTarget } from '../index.ts'

/** Without a request for so long it is closed. */
const IDLE_MS = 5000

interface Opened {
  savepoint: Promise<Savepoint>
  users: number
  timer: NodeJS.Timeout | undefined
}

export class Reader {
  private readonly served: ServedTarget
  private readonly env: NodeJS.ProcessEnv
  private opened: Opened | undefined

  constructor(served: ServedTarget, env: NodeJS.ProcessEnv) {
    this.served = served
    this.env = env
  }

  async use<T>(work: (savepoint: Savepoint) => T | Promise<T>): Promise<T> {
    const isKept = this.opened !== undefined
    this.opened ??= this.open()
    const { opened } = this
    clearTimeout(opened.timer)
    opened.users++
    try {
      const savepoint = await opened.savepoint
      if (isKept && !savepoint.isInPlace()) return await this.again(opened, work)
      await savepoint.settle()
      return await work(savepoint)
    } catch (error) {
      // It may be what it stands on: the next one gets another.
      if (this.opened === opened && !isAnswer(error)) this.opened = undefined
      throw error
    } finally {
      opened.users--
      if (opened.users === 0) this.leave(opened)
    }
  }

  /**
   * Who asks all the time would otherwise hear for ever of a file that a repair, or a backup, has replaced, or of the copy that
   * was read while the disk was full.
   */
  private again<T>(opened: Opened, work: (savepoint: Savepoint) => T | Promise<T>): Promise<T> {
    if (this.opened === opened) this.opened = undefined
    return this.use(work)
  }

  /** For what looks into files, by rules that may have changed since: it is opened for it alone. */
  async once<T>(work: (savepoint: Savepoint) => Promise<T>, options: Pick<OpenOptions, 'onNotice'>): Promise<T> {
    const savepoint = await this.openTimeline(options)
    try {
      return await work(savepoint)
    } finally {
      savepoint.close()
    }
  }

  close(): void {
    const { opened } = this
    this.opened = undefined
    clearTimeout(opened?.timer)
    if (opened?.users === 0) shut(opened)
  }

  private open(): Opened {
    const savepoint = this.openTimeline()
    const opened: Opened = { savepoint, users: 0, timer: undefined }
    // Whatever kept it from being opened may be over by the next request.
    savepoint.catch(() => {
      if (this.opened === opened) this.opened = undefined
    })
    return opened
  }

  private openTimeline(options: OpenOptions = {}): Promise<Savepoint> {
    const { path, home } = this.served
    const left = { withoutBrokenConfig: true, leaveInterrupted: true }
    return open({ target: `dir:${path}`, cwd: path, home, env: this.env, ...left, ...options })
  }

  private leave(opened: Opened): void {
    if (this.opened !== opened) {
      shut(opened)
      return
    }
    opened.timer = setTimeout(() => {
      if (this.opened === opened) this.opened = undefined
      shut(opened)
    }, IDLE_MS).unref()
  }
}

/** It says something about the request, and nothing about what was opened. */
const isAnswer = (error: unknown): boolean =>
  error instanceof SavepointError && ![1, 14, 70].includes(errorCatalogue[error.code].exit)

/** What could not be opened has been told to those who asked. */
const shut = ({ savepoint }: Opened): void =>
  void savepoint.then(
    each => each.close(),
    () => {},
  )
