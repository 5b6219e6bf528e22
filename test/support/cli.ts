/** The command line as a user calls it, from source, in a process of its own. */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Workspace } from './workspace.ts'

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** argv of the program without its own arguments. */
export const cliCommand: string[] = [process.execPath, '--disable-warning=ExperimentalWarning', main]

export interface CliResult {
  status: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export function runCli(space: Workspace, args: string[], options: SpawnSyncOptions = {}): CliResult {
  const [program, ...before] = cliCommand
  const { status, signal, stdout, stderr } = spawnSync(program!, [...before, ...args], {
    cwd: space.dir,
    env: space.env,
    timeout: 60_000,
    ...options,
    encoding: 'utf8',
  })
  return { status, signal, stdout, stderr }
}
