/**
 * The built program as a user calls it. The launcher builds it once; the tests then start what the launcher starts, so that
 * a source that is saved meanwhile neither builds again nor says so on stderr.
 */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRoot } from './machine.ts'
import type { Workspace } from './workspace.ts'

export interface CliResult {
  status: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export const checkout: string = fileURLToPath(new URL('../..', import.meta.url))
const launched = spawnSync(join(checkout, 'savepoint'), ['--version'], { encoding: 'utf8' })
if (launched.status !== 0) throw new Error(`the launcher cannot build: ${launched.stderr}`)

/** As the launcher starts it. */
const [node, flags] = readFileSync(join(checkout, 'build/ready'), 'utf8').trim().split('\n') as [string, string?]

/** argv of the program without its own arguments. */
export const builtCommand: string[] = [
  resolve(checkout, node),
  ...(flags?.split(' ') ?? []),
  '--disable-warning=ExperimentalWarning',
  join(checkout, 'dist/cli.cjs'),
]

/** The program as a word of a shell script. */
export const savepointInShell: string = builtCommand.map(word => `'${word}'`).join(' ')

export function savepoint(space: Workspace, args: string[], options: SpawnSyncOptions = {}): CliResult {
  return start([...builtCommand, ...args], space, options)
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the command answers; the tests say what they expect
export function savepointJson(space: Workspace, args: string[], options: SpawnSyncOptions = {}): any {
  const result = savepoint(space, [...args, '--json'], options)
  if (result.stdout === '') throw new Error(`no JSON from ${args.join(' ')}: ${result.stderr}`)
  return JSON.parse(result.stdout)
}

function start(command: string[], space: Workspace, options: SpawnSyncOptions): CliResult {
  const [program, ...args] = command
  const { status, signal, stdout, stderr } = spawnSync(program!, args, {
    cwd: space.dir,
    env: space.env,
    timeout: 60_000,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
    encoding: 'utf8',
  })
  return { status, signal, stdout, stderr }
}

/** What differs from one time to the next replaced, so that whole outputs can be compared. */
export function steady(text: string, space: Workspace): string {
  return text
    .replaceAll(space.base, 'BASE')
    .replace(/\b(snap|run|op)_[a-z2-7]{8}\b/g, '$1_ID')
    .replace(/\bjust now\b|\b\d+ (second|minute)s? ago\b/g, 'AGE')
    .replace(/ [+-]?\d[\d.,]* [KMG]?B\b/g, ' SIZE')
    .replace(/\b\d[\d.]* (ms|s)\b/g, 'TOOK')
    .replace(/ {2,}/g, '  ')
}

/** An id that belongs to nobody here. */
const SOMEBODY = 54_321

/** How to become an ordinary user: another id where the checkout can be read by others, otherwise root without its powers. */
export const asOrdinaryUser: { spawn: SpawnSyncOptions; before: string[]; owner: number } = chooseUser()

function chooseUser() {
  const owner = process.getuid!()
  if (!isRoot) return { spawn: {}, before: [], owner }
  const spawn = { uid: SOMEBODY, gid: SOMEBODY }
  const [program, ...args] = builtCommand
  if (spawnSync(program!, [...args, '--version'], { ...spawn, cwd: '/' }).status === 0) {
    return { spawn, before: [], owner: SOMEBODY }
  }
  return { spawn: {}, before: ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--'], owner }
}

export function savepointAsUser(space: Workspace, args: string[], options: SpawnSyncOptions = {}): CliResult {
  return start([...asOrdinaryUser.before, ...builtCommand, ...args], space, { ...asOrdinaryUser.spawn, ...options })
}

/** A shell script with the rights of that user. */
export function shellAsUser(space: Workspace, script: string): CliResult {
  return start([...asOrdinaryUser.before, 'sh', '-ec', script], space, asOrdinaryUser.spawn)
}

/** Everything of the workspace then belongs to that user. */
export function giveToUser(space: Workspace): void {
  spawnSync('chown', ['-Rh', `${asOrdinaryUser.owner}:${asOrdinaryUser.owner}`, space.base])
}
