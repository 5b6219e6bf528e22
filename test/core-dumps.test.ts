/** What the kernel writes for a process of a run that a signal ends is that run's work. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startRun, untilLater, useRuns } from './support/background-run.ts'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim()
const dumps = () =>
  space
    .sh('ls -A')
    .split('\n')
    .filter(name => name.startsWith('core'))

gated(
  pattern === 'core' || pattern === 'core.%p',
  'core dumps beside the program',
  'a core dump of a command is undone with its run, and why names the command',
  async () => {
    // Two signals, one of which has two names. What comes later than a second after the dump is no sign of whose it is.
    const script = 'sh -c "kill -SEGV \\$\\$"; sh -c "kill -ABRT \\$\\$"; sleep 1.2; echo a2 > a'
    const command = [...builtCommand, 'run', '-q', '--', 'sh', '-c', script]
    const options = { cwd: space.dir, env: space.env, stdio: 'ignore' } as const
    execFileSync('sh', ['-c', 'ulimit -c unlimited && exec "$@"', 'sh', ...command], options)
    const { causes } = savepointJson(space, ['why', dumps()[0]!])
    expect(causes.map(({ command: { signal } }: { command: { signal: string } }) => signal)).toContain('SIGSEGV')
    const { status, stdout } = savepoint(space, ['undo'])
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.not.stringContaining('somebody') })
    expect([space.read('a'), dumps()]).toEqual(['a1', []])
  },
)

it('a file of somebody else that is named so stays, also when a command is killed later', async () => {
  const run = await startRun(space, 'READY; read x; ulimit -c 0; sh -c "kill -SEGV \\$\\$"; echo a2 > a')
  space.write('core', 'mine')
  await untilLater(space, run.id)
  run.say('on')
  await run.ended
  expect(savepoint(space, ['undo']).status).toBe(3)
  expect([space.read('a'), space.read('core')]).toEqual(['a1', 'mine'])
})
