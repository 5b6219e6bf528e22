/** What a command gets from whoever called us. */

/** Beyond the standard three; signals by number. */
export interface Inherited {
  /** What the helper said of its first driver: its exit code and its words. */
  probed?: string | undefined
  descriptors: number[]
  ignoredSignals: number[]
  /** How many files may be open (`ulimit -n`), where Node has raised that. */
  fileLimit?: number | undefined
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
