/** The other end of api-worker.ts: starts one, asks it, and passes on what it and its command say. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { cancelled } from '../errors/errors.ts'
import { lineReader, outputPipe, SavepointError } from '../index.ts'
import { monotonicMs } from '../model/monotonic.ts'
import type { WorkRequest } from './api-worker.ts'
import { errorText, isLast } from './frames.ts'
import { OutputText, type Piece } from './output-text.ts'
import type { Out } from './service.ts'

/** Of a line of a worker: an answer, with some room. */
const MAX_LINE_BYTES = 80 * 1024 * 1024
/** What a command has left behind may hold its output open: so long without a word, and nobody waits any more. */
const QUIET_MS = 200

/** Where what its command writes goes: to the caller, nowhere, or into a file. */
type Output = 'told' | 'ignore' | number

export class WorkerProcess {
  private readonly child: ChildProcess
  private readonly channel: Socket
  private readonly outputs: { stdout: Readable; stderr: Readable } | undefined
  private onLine: (line: string) => void = () => {}
  private onGone: () => void = () => {}
  isGone = false
  asked = 0

  constructor(env: NodeJS.ProcessEnv, output: Output = 'ignore') {
    const file = ['./api-worker.js', './api-worker.ts'].map(name => new URL(name, import.meta.url)).find(existsSync)!
    const pipes = output === 'told' ? { stdout: outputPipe(), stderr: outputPipe() } : undefined
    // A session of its own: keys of our terminal are not for it.
    this.child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', fileURLToPath(file)], {
      stdio: ['ignore', pipes?.stdout.fd ?? output, pipes?.stderr.fd ?? output, 'pipe'] as StdioOptions,
      detached: true,
      cwd: '/',
      // The command of `exec` gets what it has: not the key to everything that is served here.
      env: { ...env, SAVEPOINT_HTTP_TOKEN: undefined },
    })
    this.outputs = pipes && { stdout: pipes.stdout.stream, stderr: pipes.stderr.stream }
    for (const pipe of Object.values(pipes ?? {})) pipe.started()
    const channel = this.child.stdio?.[3]
    if (!channel) {
      this.child.on('error', () => {})
      throw new SavepointError('busy', 'Cannot start a process for this: the system has no room for more', {
        hint: 'Try again in a moment',
      })
    }
    this.channel = channel as unknown as Socket
    const gone = () => {
      this.isGone = true
      this.onGone()
    }
    this.child.on('error', gone)
    this.channel.on('error', () => {})
    this.channel.on('close', gone)
    this.channel.on(
      'data',
      lineReader(
        MAX_LINE_BYTES,
        line => this.onLine(line),
        () => this.kill(),
      ),
    )
  }

  /** Returns the last frame; those before go to `out`. */
  async ask(request: WorkRequest, out: Out, isHarmless: boolean): Promise<string> {
    this.asked++
    const last = Promise.withResolvers<string>()
    this.onLine = line => (isLast(line) ? last.resolve(line) : out.frame(line))
    this.onGone = () => last.resolve(errorText(out.signal.aborted && isHarmless ? cancelled() : lost(request.op)))
    const cancel = () => void (isHarmless ? this.kill() : this.channel.write('{"cancel":true}\n'))
    out.signal.addEventListener('abort', cancel)
    const { stdout, stderr } = this.outputs ?? {}
    const outputs = stdout && stderr ? [passOn(stdout, 'stdout', out), passOn(stderr, 'stderr', out)] : []
    if (this.isGone) this.onGone()
    else this.channel.write(`${JSON.stringify(request)}\n`)
    if (out.signal.aborted) cancel()
    try {
      return await last.promise
    } finally {
      out.signal.removeEventListener('abort', cancel)
      // It has the output of its command open as well.
      if (outputs.length > 0) this.letGo()
      await Promise.all(outputs.map(output => output.finished(QUIET_MS)))
    }
  }

  /** It ends when it has done what it is doing, at a safe point. */
  letGo(): void {
    this.channel.end()
    this.channel.unref()
    this.child.unref()
  }

  kill(): void {
    this.child.kill('SIGKILL')
  }
}

/** Tells what comes, as fast as it is read at the other end. */
function passOn(stream: Readable, name: 'stdout' | 'stderr', out: Out): { finished(quietMs: number): Promise<void> } {
  const text = new OutputText()
  const closed = Promise.withResolvers<void>()
  let heardAt = monotonicMs()
  let isPaused = false
  const tell = (piece: Piece | undefined) => {
    if (piece) out.frame(JSON.stringify({ [name]: piece.text, ...(piece.isBase64 ? { encoding: 'base64' } : {}) }))
  }
  stream.on('data', (chunk: Buffer) => {
    heardAt = monotonicMs()
    tell(text.push(chunk))
    if (!out.isCrowded) return
    stream.pause()
    isPaused = true
    void out.drained().then(() => {
      isPaused = false
      heardAt = monotonicMs()
      stream.resume()
    })
  })
  stream.on('error', () => {})
  stream.on('close', () => closed.resolve())
  return {
    async finished(quietMs) {
      const timer = setInterval(() => {
        if (!isPaused && monotonicMs() - heardAt > quietMs) stream.destroy()
      }, quietMs / 4)
      heardAt = monotonicMs()
      await closed.promise
      clearInterval(timer)
      tell(text.end())
    },
  }
}

/** It may have been killed at any point. */
const lost = (op: string): SavepointError =>
  new SavepointError('failed', `Cannot tell what became of ${op}: the process that did it has ended`, {
    hint: '`savepoint operations` shows whether it was carried out; what was interrupted is completed by the next command',
  })
