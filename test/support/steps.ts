/**
 * A script in steps: after each of them it waits until the test has seen what the step leads to. So nothing depends on how
 * fast the machine is, and nobody waits for longer than it takes.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Workspace } from './workspace.ts'

/** Longer, and it does not come: the script goes on, and the test says what is missing. */
const LIMIT_MS = 60_000
const LOOK_AGAIN_MS = 20

export type Step = [script: string, until: () => boolean]

/** Starts the script by `run`, and returns what that returns. */
export async function inSteps<Result>(
  space: Workspace,
  steps: Step[],
  run: (script: string) => Promise<Result>,
): Promise<Result> {
  // A pipe for each: the end of one wait must not be taken for that of the next.
  const pipes = mkdtempSync(join(space.base, 'steps-'))
  const names = steps.map((_, i) => join(pipes, String(i)))
  execFileSync('mkfifo', names)
  const running = run(steps.map(([script], i) => `${script}\nread step < '${names[i]}'`).join('\n'))
  let isOver = false
  const over = running.finally(() => {
    isOver = true
  })
  // Whoever waits for it sees how it ended.
  over.catch(() => {})
  // For reading as well, so that opening does not wait for the other end; closed when that has read.
  const opened = names.map(name => openSync(name, constants.O_RDWR))
  let released = 0
  const release = () => writeSync(opened[released++]!, '\n')
  try {
    for (const [, until] of steps) {
      const deadline = performance.now() + LIMIT_MS
      while (!isOver && !until() && performance.now() < deadline) await pause(LOOK_AGAIN_MS)
      release()
    }
    return await running
  } finally {
    while (released < steps.length) release()
    await over.catch(() => {})
    for (const fd of opened) closeSync(fd)
  }
}
