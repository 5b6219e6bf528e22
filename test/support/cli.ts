/** The command line as a user calls it, in a process of its own, for tests that work with the library beside it. */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { builtCommand, type CliResult } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

/** argv of the program without its own arguments. */
export const cliCommand: string[] = builtCommand

/** The same from source, which takes six times as long to start: only where a module of it is needed in the process. */
export const sourceCommand: string[] = [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)),
]

export function runCli(
  space: Workspace,
  args: string[],
  options: SpawnSyncOptions = {},
  [program, ...before] = cliCommand,
): CliResult {
  const { status, signal, stdout, stderr } = spawnSync(program!, [...before, ...args], {
    cwd: space.dir,
    env: space.env,
    timeout: 60_000,
    ...options,
    encoding: 'utf8',
  })
  return { status, signal, stdout, stderr }
}
