/**
 * Runs verbs with the rights of an ordinary user. As root, all capabilities are dropped: the owner of the files stays,
 * and permissions bind it as they bind anybody, wherever the checkout lies. Otherwise we are an ordinary user already.
 */
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { finishVerbs, type ProcessResult, type Verb } from './engine-process.ts'
import { isRoot } from './machine.ts'
import type { Workspace } from './workspace.ts'

const script = fileURLToPath(new URL('./engine-child.ts', import.meta.url))
const powerless = isRoot ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : ['env']

export const canDropPrivilege = !isRoot || spawnSync(powerless[0]!, [...powerless.slice(1), 'true']).status === 0

export function runAsUser(workspace: Workspace, verbs: Verb[]): Promise<ProcessResult> {
  const task = JSON.stringify({ options: { create: true }, verbs })
  const [program, ...args] = [...powerless, process.execPath, '--disable-warning=ExperimentalWarning', script, task]
  return finishVerbs(
    spawn(program!, args, { cwd: workspace.dir, env: workspace.env, stdio: ['ignore', 'pipe', 'inherit'] }),
  )
}
