/**
 * How results look: colours (which leave text unchanged when they are off), and from where paths and commands are
 * written, so that what is shown can be typed where it is shown.
 */
import { isWithin, type Raw, relativeRaw, showPath } from '../model/raw-path.ts'

export interface Style {
  readonly on: boolean
  /** A path of the target, relative to where the user stands. */
  path(raw: Raw): string
  /** The same, as a command takes it: whole for who stands outside of the target. */
  operand(raw: Raw): string
  /** "savepoint LINE", with the options that choose target and store as the user gave them. */
  command(line: string): string
  /** The command that takes back, or does again, an operation that changed `paths`. */
  wayBack(direction: 'undo' | 'redo', paths: readonly Raw[]): string
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  blue(text: string): string
  magenta(text: string): string
  cyan(text: string): string
}

/**
 * `base`: the user's directory, relative to the target. `program`: the words before a verb. `undoStops`: whether `undo` alone
 * would be about a run that goes on. `operand`: for who stands outside.
 */
export function createStyle(
  on: boolean,
  base: Raw = '',
  program = 'savepoint',
  undoStops: () => boolean = () => false,
  operand?: (raw: Raw) => string,
): Style {
  const path = (raw: Raw) => showPath(relativeRaw(base, raw))
  const command = (line: string) => `${program} ${line}`
  const paint = (start: number) => (text: string) => (on && text !== '' ? `\x1b[${start}m${text}\x1b[m` : text)
  return {
    on,
    path,
    operand: operand ?? path,
    command,
    // What reaches beyond the directory that it is given in needs a word.
    wayBack: (direction, paths) => {
      const all = paths.every(path => isWithin(path, base)) ? '' : ' --all'
      return command(`${direction}${all}${direction === 'undo' && undoStops() ? ' --keep-running' : ''}`)
    },
    bold: paint(1),
    dim: paint(2),
    red: paint(31),
    green: paint(32),
    yellow: paint(33),
    blue: paint(34),
    magenta: paint(35),
    cyan: paint(36),
  }
}

/** --no-color over NO_COLOR over FORCE_COLOR over whether `stream` is a terminal that can. */
export function wantsColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv, allowed = true): boolean {
  if (!allowed || env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stream.isTTY === true && env.TERM !== 'dumb'
}
