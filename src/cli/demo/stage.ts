/** Where the demo is played: a temporary directory with a home of its own, commands shown and then really run. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quoteCommand } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'

export interface Stage {
  readonly project: string
  readonly agent: string
  readonly hasGit: boolean
  /** Tells the story; waits on a terminal. */
  say(text: string): Promise<void>
  /** Shows `savepoint …` and runs it for real, in the project. Throws when it fails. */
  savepoint(args: string[]): Promise<void>
  savepointJson(args: string[]): unknown
  /** Shows a shell line and runs it. */
  shell(line: string): Promise<void>
  git(...args: string[]): void
  clear(): void
}

const msPerChar = 38
const minPauseMs = 900
const afterCommandMs = 1500

export function buildStage(context: Context, fast: boolean): Stage {
  const root = mkdtempSync(join(tmpdir(), 'savepoint-demo-'))
  const project = join(root, 'project')
  const home = join(root, 'home')
  mkdirSync(project)
  mkdirSync(home, { mode: 0o700 })
  // The demo stores a few kilobytes; a nearly full disk is no reason not to show it.
  writeFileSync(join(home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
  const env = environment(root, project, home, context.style.on)
  const { json } = context.options
  const paced = !fast && !json && process.stdout.isTTY === true
  const pause = (ms: number) => (paced ? new Promise<void>(resolve => setTimeout(resolve, ms)) : Promise.resolve())
  const show = (line: string) => {
    if (!json) context.line(`\n${context.style.green('$')} ${context.style.bold(line)}`)
  }
  const call = (program: string, args: string[]) =>
    spawnSync(program, args, {
      cwd: project,
      env,
      stdio: json ? 'ignore' : ['ignore', 'inherit', 'inherit'],
    })
  const self = (args: string[]) => [...process.execArgv, process.argv[1]!, ...args]
  return {
    project,
    agent: join(root, 'agent.sh'),
    hasGit: spawnSync('git', ['--version'], { stdio: 'ignore' }).status === 0,
    async say(text) {
      if (json) return
      context.line(`\n${context.style.cyan(text)}`)
      await pause(Math.max(minPauseMs, text.length * msPerChar))
    },
    async savepoint(args) {
      show(`savepoint ${quoteCommand(args)}`)
      await pause(minPauseMs)
      requireSuccess(call(process.execPath, self(args)), args)
      await pause(afterCommandMs)
    },
    savepointJson(args) {
      const child = spawnSync(process.execPath, self([...args, '--json']), {
        cwd: project,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      requireSuccess(child, args)
      return JSON.parse(child.stdout.toString())
    },
    async shell(line) {
      show(line)
      await pause(minPauseMs)
      call('sh', ['-c', line])
      await pause(afterCommandMs)
    },
    git: (...args) => void spawnSync('git', args, { cwd: project, env, stdio: 'ignore' }),
    clear: () => rmSync(root, { recursive: true, force: true }),
  }
}

function requireSuccess(child: SpawnSyncReturns<Buffer>, args: string[]): void {
  if (child.error) throw child.error
  if (child.status !== 0)
    throw new Error(`"savepoint ${quoteCommand(args)}" of the demo ended with ${child.signal ?? child.status}`)
}

/** Nothing of the user's settings has a part in the story. */
function environment(root: string, project: string, home: string, colour: boolean): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (!name.startsWith('SAVEPOINT_') && !name.startsWith('GIT_')) env[name] = value
  }
  const person = { NAME: 'Demo', EMAIL: 'demo@example.org' }
  for (const role of ['AUTHOR', 'COMMITTER'])
    for (const [key, value] of Object.entries(person)) env[`GIT_${role}_${key}`] = value
  return {
    ...env,
    PWD: project,
    SAVEPOINT_HOME: home,
    SAVEPOINT_PAGER: 'cat',
    GIT_PAGER: 'cat',
    GIT_CEILING_DIRECTORIES: root,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    ...(colour ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' }),
  }
}
