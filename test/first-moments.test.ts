/** What is said while the first snapshot of a directory is being taken. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
const children: ChildProcess[] = []
beforeEach(() => {
  space = new Workspace()
  space.write('a')
})
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  space.remove()
})

/** A run whose first capture waits until the file `go` is there, beside the target. */
function start(more: NodeJS.ProcessEnv = {}) {
  const child = spawn(builtCommand[0]!, [...builtCommand.slice(1), 'run', '--', 'true'], {
    cwd: space.dir,
    env: { ...space.env, ...more },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  const said = { stderr: '' }
  child.stderr!.setEncoding('utf8').on('data', text => {
    said.stderr += text
  })
  return { said, ended: once(child, 'close').then(([status]) => status) }
}

it('the listings do not ask for a snapshot, a trace is not there yet, and who waits is told for what', async () => {
  const first = start({ SAVEPOINT_FAILPOINT: `capture:walking~${space.at('../go')}` })
  const isTaking = () => savepoint(space, ['status']).stdout.includes('its first snapshot is being taken')
  await vi.waitUntil(isTaking, { timeout: 60_000 })
  const run = savepointJson(space, ['runs'])[0]!.id
  const text = (...args: string[]) => savepoint(space, args).stdout
  const taken = `No snapshots yet: the first one is being taken, before ${run}\n`
  expect([text('log'), text('snapshots'), text('branches')]).toEqual([taken, taken, taken])
  expect(text('snapshots', run)).toBe(`No snapshots of ${run} yet: the first one is being taken\n`)
  expect(text('trace')).toBe(`Nothing is traced of ${run} yet: it goes on\n`)

  const second = start({ SAVEPOINT_LOCK_WAIT_MS: '60000' })
  await vi.waitUntil(() => second.said.stderr.includes('waiting'), { timeout: 60_000 })
  space.write('../go')
  expect([await first.ended, await second.ended]).toEqual([0, 0])
  expect(second.said.stderr.match(/waiting.*/g)).toEqual([`waiting for ${run}: a snapshot of it is being taken`])
  expect(first.said.stderr).not.toContain('waiting')
}, 120_000)

it('where nobody takes one, the listings say how, and of a run that is over there is nothing to come', () => {
  space.write('savepoint.yaml', 'snapshots: { disabled: true }\n')
  expect(savepoint(space, ['run', '--tracer', 'none', '--', 'true']).status).toBe(0)
  expect(savepoint(space, ['log']).stdout).toBe('No snapshots yet. Take one: savepoint snapshot\n')
  expect(savepoint(space, ['trace']).stdout).toMatch(/^Nothing is traced of run_\w+\n$/)
})
