/**
 * The terminal that the command of a run has while it lives. A program that is killed cannot tidy it up, and leaves it in raw
 * mode, on the screen of a program that is gone, with the cursor hidden. One that ends by itself is not meddled with.
 */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { addon } from '../native/addon.ts'
import type { TracedEnd } from '../tracers/command-process.ts'

const STDIN = 0
const STDOUT = 1

const off = (...modes: number[]): string => modes.map(mode => `\x1b[?${mode}l`).join('')

/**
 * What full-screen programs switch on, switched off. The alternate screen is entered first: leaving it puts the cursor where
 * it was at the entrance, which may be long ago when the program was on the ordinary screen.
 */
const RESET: string = [
  '\x1b[?1049h\x1b[?1049l', // the ordinary screen
  '\x1b[?25h', // the cursor is shown
  off(9, 1000, 1002, 1003, 1005, 1006, 1015), // the mouse is the terminal's
  off(1004, 2004), // focus and pasted text are not told apart
  off(1), // arrow keys and
  '\x1b>', // keypad as a shell expects them
  '\x1b[m', // plain text
].join('')

/** They come of keys: whoever dies of them was not in the middle of a screen, or has changed what the keys do. */
const byKeys: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT'])

export class RunTerminal {
  private readonly modes = addon.terminalModes(STDIN)
  private readonly kind: string | undefined

  /** From before the command starts. `kind`: of terminal, as TERM says. */
  constructor(kind: string | undefined) {
    this.kind = kind
  }

  /** The command has ended. `isStopped`: by us, although it may have ended with an exit code then. */
  tidyUp({ signal }: TracedEnd, isStopped: boolean): void {
    if (!this.modes || (!isStopped && signal === undefined)) return
    const isChanged = addon.terminalModes(STDIN)?.equals(this.modes) === false
    // Another one's job by now, if it is not ours.
    if (!addon.setTerminalModes(STDIN, this.modes)) return
    if (!isStopped && byKeys.has(signal!) && !isChanged) return
    if (!isatty(STDOUT) || this.kind === undefined || this.kind === 'dumb') return
    try {
      writeSync(STDOUT, RESET)
    } catch {
      // It has gone with the command.
    }
  }
}
