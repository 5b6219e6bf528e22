/** A question on the terminal, answered with yes or no. */
import { createInterface } from 'node:readline/promises'

/** Somebody who can be asked sees what we write and can type. */
export const canAsk = (isJson: boolean): boolean => process.stdin.isTTY && process.stderr.isTTY && !isJson

/** False also when nobody answers: end of file, Ctrl-C, a signal. */
export async function confirm(question: string, signal?: AbortSignal): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const closed = new Promise<undefined>(resolve => terminal.once('close', () => resolve(undefined)))
    const answer = await Promise.race([terminal.question(`${question} [y/N] `, { signal }), closed])
    // Nobody has pressed Enter.
    if (answer === undefined) process.stderr.write('\n')
    return /^y(es)?$/i.test(answer?.trim() ?? '')
  } catch {
    process.stderr.write('\n')
    return false
  } finally {
    terminal.close()
  }
}
