/** A run that goes on while the test does something else, and what it does is the test's choice. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { vi } from 'vitest'
import { builtCommand } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

/** A shell in a run that does what it is told, line by line. */
export class LiveAgent {
  id = ''
  private pid = 0
  private readonly child: ChildProcess
  private readonly ended: Promise<unknown>
  private lines = ''

  constructor(space: Workspace) {
    const script = 'echo "$SAVEPOINT_RUN $$"; while read -r line; do eval "$line"; echo .; done'
    this.child = spawn(builtCommand[0]!, [...builtCommand.slice(1), 'run', '-q', '--', 'sh', '-c', script], {
      cwd: space.dir,
      env: space.env,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.child.stdin!.on('error', () => {})
    this.child.stdout!.setEncoding('utf8')
    this.ended = once(this.child, 'close')
  }

  async begin(): Promise<void> {
    const [id, pid] = (await this.answer()).split(' ')
    this.id = id!
    this.pid = Number(pid)
  }

  async do(command: string): Promise<void> {
    this.child.stdin!.write(`${command}\n`)
    await this.answer()
  }

  async end(): Promise<void> {
    this.child.stdin!.end()
    await this.ended
  }

  /** Savepoint first, then the command. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    const isOver = () =>
      !existsSync(`/proc/${this.pid}`) || readFileSync(`/proc/${this.pid}/stat`, 'utf8').includes(') Z ')
    this.child.stdin!.end()
    await vi.waitUntil(isOver, { timeout: 60_000 })
    await this.ended
  }

  get over(): Promise<unknown> {
    return this.ended
  }

  private async answer(): Promise<string> {
    while (!this.lines.includes('\n')) {
      const [data] = (await once(this.child.stdout!, 'data')) as [string]
      this.lines += data
    }
    const at = this.lines.indexOf('\n')
    const line = this.lines.slice(0, at)
    this.lines = this.lines.slice(at + 1)
    return line
  }
}
