/**
 * Runs verbs with the rights of an ordinary user. As root, all capabilities are dropped: the owner of the files stays,
 * and permissions bind it as they bind anybody, wherever the checkout lies. Otherwise we are an ordinary user already.
 */
import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiled, finishVerbs, type ProcessResult, type Verb } from './engine-process.ts'
import { isRoot } from './machine.ts'
import type { Workspace } from './workspace.ts'

const script = fileURLToPath(new URL('./engine-child.ts', import.meta.url))
const powerless = isRoot ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : ['env']

/** Asked with the program that is started later: one with file capabilities (anybody's `true`) does not start without them. */
export const canDropPrivilege =
  !isRoot || spawnSync(powerless[0]!, [...powerless.slice(1), process.execPath, '--version']).status === 0

export interface UserOptions {
  /** name[#hits][@ERRNO], as in src/store/failpoint.ts. */
  failpoint?: string
  /** Done by this process, with all its rights, when the other one reaches the step; it waits meanwhile. */
  at?: { point: string; work: () => void }
}

export async function runAsUser(
  workspace: Workspace,
  verbs: Verb[],
  { failpoint, at }: UserOptions = {},
): Promise<ProcessResult> {
  const [reached, done] = ['reached', 'done'].map(name => join(workspace.base, `${name}.fifo`))
  const pause = at && { point: at.point, script: `echo > '${reached}'; read line < '${done}'` }
  if (at) spawnSync('mkfifo', [reached!, done!])
  const task = JSON.stringify({ options: { create: true }, verbs, at: pause })
  const [program, ...args] = [...powerless, process.execPath, '--disable-warning=ExperimentalWarning', script, task]
  const env = { ...workspace.env, ...compiled, ...(failpoint === undefined ? {} : { SAVEPOINT_FAILPOINT: failpoint }) }
  const child = spawn(program!, args, { cwd: workspace.dir, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const finished = finishVerbs(child)
  if (at) {
    // Whoever ends without reaching the step must not leave us waiting.
    const met = await Promise.race([readFile(reached!).then(() => true), finished.then(() => false)])
    if (!met) throw new Error(`${at.point} was not reached: ${JSON.stringify((await finished).error)}`)
    at.work()
    await writeFile(done!, '\n')
    for (const fifo of [reached!, done!]) rmSync(fifo)
  }
  return finished
}
