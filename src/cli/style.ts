/** Colours for a terminal. `paint` functions return their text unchanged when colours are off. */
export interface Style {
  readonly on: boolean
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  blue(text: string): string
  magenta(text: string): string
  cyan(text: string): string
}

export function createStyle(on: boolean): Style {
  const paint = (start: number) => (text: string) => (on && text !== '' ? `\x1b[${start}m${text}\x1b[m` : text)
  return {
    on,
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
