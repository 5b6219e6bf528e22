/** How results look: colours (which leave text unchanged when they are off), and from where paths are written. */
import { type Raw, showPath } from '../model/raw-path.ts'

export interface Style {
  readonly on: boolean
  /** A path of the target, relative to where the user stands, so that it can be typed as it is shown. */
  path(raw: Raw): string
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  blue(text: string): string
  magenta(text: string): string
  cyan(text: string): string
}

/** `base`: the user's directory, relative to the target. */
export function createStyle(on: boolean, base: Raw = ''): Style {
  const paint = (start: number) => (text: string) => (on && text !== '' ? `\x1b[${start}m${text}\x1b[m` : text)
  return {
    on,
    path: raw => showPath(relativeTo(base, raw)),
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

function relativeTo(base: Raw, path: Raw): Raw {
  if (base === '') return path === '' ? '.' : path
  const from = base.split('/')
  const to = path === '' ? [] : path.split('/')
  let shared = 0
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++
  const parts = [...from.slice(shared).map(() => '..'), ...to.slice(shared)]
  return parts.length === 0 ? '.' : parts.join('/')
}

/** --no-color over NO_COLOR over FORCE_COLOR over whether `stream` is a terminal that can. */
export function wantsColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv, allowed = true): boolean {
  if (!allowed || env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stream.isTTY === true && env.TERM !== 'dumb'
}
