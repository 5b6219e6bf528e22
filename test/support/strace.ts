/** What strace, an observer that is not ours, says that a command executed and how that ended. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Execution } from '../../src/index.ts'
import type { Workspace } from './workspace.ts'

export const hasStrace = spawnSync('strace', ['-V']).status === 0

/** Runs a shell script under strace, and gives a line for each execution: its arguments, and how its process ended, if as it. */
export function straceLines(space: Workspace, script: string): string[] {
  const prefix = join(space.base, 'strace')
  const args = ['-ff', '-v', '-s', '4000', '-e', 'trace=execve,execveat', '-o', prefix]
  spawnSync('strace', [...args, 'sh', '-c', script], { cwd: space.dir, env: space.env })
  const files = readdirSync(space.base).filter(name => name.startsWith('strace.'))
  return files.flatMap(name => linesOf(readFileSync(join(space.base, name), 'utf8')))
}

/** The same of what was traced by us. */
export const ownLines = (executions: Execution[]): string[] =>
  executions.map(({ argv, exitCode, signal }) => lineOf(argv, signal ?? exitCode))

/** One file has one process. */
function linesOf(text: string): string[] {
  const executed = [...text.matchAll(/^execve(?:at)?\(.*?"(?:[^"\\]|\\.)*", \[(.*?)\], .*\) = 0$/gm)].map(
    ([, argv]) => JSON.parse(`[${argv}]`) as string[],
  )
  const exit = /^\+\+\+ exited with (\d+) \+\+\+$/m.exec(text)?.[1]
  const end = exit === undefined ? /^\+\+\+ killed by (\w+)/m.exec(text)?.[1] : Number(exit)
  return executed.map((argv, i) => lineOf(argv, i === executed.length - 1 ? end : undefined))
}

const lineOf = (argv: string[], end: string | number | undefined): string => `${normal(argv.join(' '))} → ${end}`

/** Names of temporary files and numbers of processes differ from one time to the next. */
const normal = (text: string) =>
  text
    .replaceAll(/\/[^ ]*\/cc\w{6}\b/g, '/tmp/cc')
    .replaceAll(/--jobserver-\S+/g, '')
    .replaceAll(/-mtune\S+/g, '')
