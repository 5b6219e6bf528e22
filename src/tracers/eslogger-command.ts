/**
 * A command on macOS, with eslogger beside it: the command is started as without a tracer, and what eslogger tells of it is
 * passed on. For root with full disk access only. Untested on a Mac; tested with a stand-in that prints the same lines.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { isStopped, type TracedEnd } from './command-process.ts'
import { EsloggerParser } from './eslogger.ts'
import type { HelperProbe } from './probe-helper.ts'
import type { TracedOptions } from './traced-options.ts'

const PROGRAM = '/usr/bin/eslogger'
/** A process that does nothing: lines come in order, so that all that was before it has been told when its end is. */
const MARK = '/usr/bin/true'
/** Until eslogger listens, marks are not seen: another one is made after so long. */
const MARK_AGAIN_MS = 100
/** Longer than this, and it does not listen (it may lack full disk access), or has stopped. */
const READY_MS = 5000
const BARRIER_MS = 2000

/** Cheap, and never throws. Whether full disk access was given shows when it is started. */
export function probeEslogger(platform: string = process.platform, program = PROGRAM): HelperProbe {
  const no = (detail: string): HelperProbe => ({ works: false, detail, withoutPrivileges: false })
  if (platform !== 'darwin') return no('this is for macOS')
  if (process.getuid!() !== 0) return no('this needs root, and full disk access of the terminal')
  try {
    accessSync(program, constants.X_OK)
  } catch {
    return no(`${program} does not exist (macOS 13 has it)`)
  }
  return { works: true, detail: 'works, without changes of files, and nothing can be held', withoutPrivileges: false }
}

export interface EsloggerOptions extends Pick<TracedOptions, 'onEvent' | 'onBatch' | 'onHelperDied'> {
  /** Starts the command, as it would be without a tracer. */
  start(): ChildProcess
}

export class EsloggerCommand {
  private readonly options: EsloggerOptions
  private readonly logger: ChildProcess
  private readonly parser: EsloggerParser
  private readonly outcome = Promise.withResolvers<TracedEnd>()
  private readonly loggerGone: Promise<void>
  private child: ChildProcess | undefined

  constructor(options: EsloggerOptions, program = PROGRAM) {
    this.options = options
    this.parser = new EsloggerParser(event => options.onEvent(event))
    // In a group of its own: eslogger says nothing of its own one.
    this.logger = spawn(program, ['exec', 'fork', 'exit'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    this.logger.stdout!.on('data', (chunk: Buffer) => {
      this.parser.push(chunk)
      options.onBatch()
    })
    this.loggerGone = new Promise(resolve => {
      this.logger.on('error', () => resolve())
      this.logger.on('close', () => resolve())
    })
    void this.run().then(this.outcome.resolve, this.outcome.reject)
  }

  /** How the command itself ended. Rejects with what kept it from starting. */
  get ended(): Promise<TracedEnd> {
    return this.outcome.promise
  }

  get pid(): number | undefined {
    return this.child?.pid
  }

  /** There is none above the command. */
  get root(): undefined {
    return undefined
  }

  get isStopped(): boolean {
    return isStopped(this.pid)
  }

  kill(signal: NodeJS.Signals): void {
    this.child?.kill(signal)
  }

  /** Nothing is ever held. */
  release(): void {}

  keepAll(): void {}

  begun(): void {}

  async stop(): Promise<void> {
    this.kill('SIGKILL')
  }

  /** Returns when everything that happened before the call has been told, or eslogger does not answer. */
  async barrier(): Promise<void> {
    await this.mark(BARRIER_MS)
  }

  /** Which files are open is not told. */
  look(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  /** Nothing is told of what it leaves. */
  leave(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  private async run(): Promise<TracedEnd> {
    try {
      if (!(await this.mark(READY_MS)))
        throw Object.assign(new Error('eslogger does not tell anything: it needs full disk access'), { code: 'EPERM' })
      const end = await this.runCommand()
      if (!(await this.mark(BARRIER_MS))) this.options.onHelperDied()
      return { ...end, survivors: this.parser.alive > 0, left: [] }
    } finally {
      this.logger.kill()
      await this.loggerGone
    }
  }

  private runCommand(): Promise<Omit<TracedEnd, 'survivors' | 'left'>> {
    return new Promise((resolve, reject) => {
      const child = this.options.start()
      this.child = child
      // Lines about it are read later than this.
      if (child.pid !== undefined) this.parser.watch(child.pid)
      child.on('error', reject)
      child.on('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }))
    })
  }

  /** Whether the end of a process that is started now came along within `limitMs`. */
  private mark(limitMs: number): Promise<boolean> {
    return new Promise(resolve => {
      const settle = (seen: boolean) => {
        clearInterval(again)
        clearTimeout(limit)
        resolve(seen)
      }
      const start = () => {
        const { pid } = spawn(MARK, { stdio: 'ignore' }).on('error', () => settle(false))
        if (pid !== undefined) this.parser.whenEnded(pid, () => settle(true))
      }
      const again = setInterval(start, MARK_AGAIN_MS)
      const limit = setTimeout(() => settle(false), limitMs)
      void this.loggerGone.then(() => settle(false))
      start()
    })
  }
}
