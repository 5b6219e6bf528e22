/** Whether Ctrl-C and Ctrl-\ of a terminal come to this process. Who else sends their signals means the command, and only we get them. */
import { readFileSync } from 'node:fs'

/** The job that the keys go to is ours; yes where that cannot be told. */
export function areKeysOurs(): boolean {
  try {
    const [, group, terminal, foreground] = /^.*\) \S \d+ (\d+) \d+ (-?\d+) (-?\d+)/s.exec(
      readFileSync('/proc/self/stat', 'latin1'),
    )!
    return terminal !== '0' && group === foreground
  } catch {
    return true
  }
}
