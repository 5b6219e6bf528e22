/** A run whose supervisor is killed at the end of its script. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { builtCommand } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

/** Between the command and its supervisor there may be a helper, so that it is not always the parent. */
const kill = `kill -9 $(cat "$SUPERVISOR")`

/** How the supervisor ended: 'SIGKILL', if all is well. */
export function killedRun(space: Workspace, script: string, options: string[] = []): NodeJS.Signals | null {
  const supervised = ['sh', '-c', 'echo $$ > "$SUPERVISOR"; exec "$@"', 'sh', ...builtCommand]
  const command = [...supervised, 'run', '-q', ...options, '--', 'sh', '-c', `${script}; ${kill}`]
  const env = { ...space.env, SUPERVISOR: join(space.base, 'supervisor') }
  return spawnSync(command[0]!, command.slice(1), { cwd: space.dir, env, stdio: ['ignore', 'pipe', 'pipe'] }).signal
}
