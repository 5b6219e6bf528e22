/** A real terminal emulator for a command: a tmux server of its own, which knows what is on the screen and how it is set. */
import { spawnSync } from 'node:child_process'

export const hasTmux: boolean = spawnSync('tmux', ['-V']).status === 0

export class Tmux {
  private readonly options: { cwd: string; env: NodeJS.ProcessEnv }

  /** A window of 24 by 80 with a shell. `directory` is for its socket. */
  constructor({ directory, cwd, env }: { directory: string; cwd: string; env: NodeJS.ProcessEnv }) {
    this.options = { cwd, env: { ...env, TMUX: undefined, TMUX_TMPDIR: directory, PS1: '$ ', TERM: 'xterm' } }
    this.tell('-f', '/dev/null', 'new-session', '-d', '-x', '80', '-y', '24', 'sh -i')
  }

  /** To whatever reads there now. */
  type(line: string): void {
    this.tell('send-keys', '-l', `${line}\n`)
  }

  /** To the shell, once its prompt is there: what is typed before it would be echoed above it. */
  async command(line: string): Promise<void> {
    await this.shows(/(?:^|\n)[#$] ?\n*$/)
    this.type(line)
  }

  get screen(): string {
    return this.tell('capture-pane', '-p')
  }

  /** By the names that tmux has for them: alternate_on, cursor_flag. */
  flags(...names: string[]): string {
    return this.tell('display-message', '-p', names.map(name => `#{${name}}`).join(' ')).trim()
  }

  /** Until the screen shows it, or something else is so. */
  async shows(what: RegExp | (() => boolean)): Promise<void> {
    const isSo = () => (typeof what === 'function' ? what() : what.test(this.screen))
    for (let i = 0; i < 600 && !isSo(); i++) await new Promise(resolve => setTimeout(resolve, 50))
    if (!isSo()) throw new Error(`the terminal does not show ${what}, but:\n${this.screen}`)
  }

  close(): void {
    spawnSync('tmux', ['kill-server'], this.options)
  }

  private tell(...words: string[]): string {
    const { status, stdout, stderr } = spawnSync('tmux', words, { ...this.options, encoding: 'utf8' })
    if (status !== 0) throw new Error(`tmux ${words.join(' ')}: ${stderr}`)
    return stdout
  }
}
