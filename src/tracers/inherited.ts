/** What a command gets from whoever called us. */
import { readFileSync } from 'node:fs'

/** Beyond the standard three; signals by number. */
export interface Inherited {
  /** What the helper said of its first driver: its exit code and its words. */
  probed?: string | undefined
  descriptors: number[]
  ignoredSignals: number[]
  /** How many files may be open (`ulimit -n`), where Node has raised that. */
  fileLimit?: number | undefined
}

const O_PATH = 0o10000000

/** Standard input is closed for our caller: the launcher has put in its place what can only be named (native/helper/inherit.h). */
export function isInputClosed(): boolean {
  try {
    const [, flags] = /^flags:\s*(\d+)/m.exec(readFileSync('/proc/self/fdinfo/0', 'latin1'))!
    return (Number.parseInt(flags!, 8) & O_PATH) !== 0
  } catch {
    return false
  }
}

/** For spawn: each descriptor under its own number. */
export function inheritedStdio({ descriptors }: Inherited): ('inherit' | 'ignore' | number)[] {
  const stdio: ('inherit' | 'ignore' | number)[] = ['inherit', 'inherit', 'inherit']
  for (const fd of descriptors) {
    while (stdio.length < fd) stdio.push('ignore')
    stdio[fd] = fd
  }
  return stdio
}
