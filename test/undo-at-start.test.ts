/** `undo` and `rollback RUN` of a run whose first snapshot is still being taken wait for that, and the run does nothing more. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { builtCommand, savepoint } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let agent: ChildProcess
beforeEach(async () => {
  space = new Workspace()
  for (let i = 0; i < 60; i++) {
    mkdirSync(space.at(`d${i}`))
    for (let j = 0; j < 50; j++) writeFileSync(space.at(`d${i}/f${j}`), `${i} ${j}\n`)
  }
  // What it writes is where all has been captured: else it would wait for that, and not be stopped.
  // Not so many batches of directories that the walk could be at its end.
  const env = { ...space.env, SAVEPOINT_FAILPOINT: `capture:walking#5~${go()}` }
  const script =
    'echo $$ > ../pid; rm -r d1; mkdir d1; echo > d1/f1; echo > ../changed; while sleep 0.02; do echo >> d1/f1; done'
  agent = start(['run', '-q', '--', 'sh', '-c', script], env)
  await vi.waitUntil(() => existsSync(join(space.base, 'changed')), { timeout: 60_000 })
})
afterEach(() => {
  agent.kill('SIGKILL')
  space.remove()
})

const go = () => join(space.base, 'go')
const start = (args: string[], env = space.env) =>
  spawn(builtCommand[0]!, [...builtCommand.slice(1), ...args], {
    cwd: space.dir,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
/** Stopped: it writes nothing more. */
const isHeld = () =>
  /^State:\s+[Tt]/m.test(readFileSync(`/proc/${readFileSync(join(space.base, 'pid'), 'utf8').trim()}/status`, 'utf8'))
const isBack = () => [readdirSync(space.at('d1')).length, space.read('d1/f1')]

describe.each(['undo', 'rollback'])('%s', verb => {
  it('waits, stops the run and takes it back', async () => {
    expect(savepoint(space, ['status']).stdout).toMatch(/ is protected, its first snapshot is being taken: 0 snapshots/)
    const [, run] = /(run_\w+)/.exec(savepoint(space, ['runs']).stdout)!
    const asked = start(verb === 'undo' ? [verb] : [verb, '--run', run!])
    let said = ''
    asked.stderr!.on('data', data => {
      said += data
    })
    const ended = Promise.all([once(asked, 'exit'), once(agent, 'exit')])
    await vi.waitUntil(isHeld, { timeout: 60_000 })
    writeFileSync(go(), '')
    const [[status]] = await ended
    expect([status, isBack()], said).toEqual([0, [50, '1 1\n']])
  }, 120_000)
})

it('given up by its user, it stops nothing', async () => {
  const asked = start(['undo'])
  const ended = once(asked, 'exit')
  await vi.waitUntil(isHeld, { timeout: 60_000 })
  asked.kill('SIGINT')
  await ended
  const before = space.read('d1/f1')!.length
  await vi.waitUntil(() => space.read('d1/f1')!.length > before, { timeout: 60_000 })
  writeFileSync(go(), '')
}, 120_000)

it('status of one that was killed then says that it can be undone', async () => {
  const ended = once(agent, 'exit')
  agent.kill('SIGKILL')
  await ended
  const { stdout } = savepoint(space, ['status'])
  expect(stdout).toContain(' has no snapshot yet: 0 snapshots')
  expect(stdout).toMatch(
    /\nInterrupted: .* \(Savepoint was killed in it; what is there now counts as its end\)\nTo undo it: savepoint undo\n/,
  )
  expect([savepoint(space, ['undo']).status, isBack()]).toEqual([0, [50, '1 1\n']])
}, 120_000)
