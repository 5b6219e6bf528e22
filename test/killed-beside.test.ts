/** A run whose supervisor was killed, beside one that was not: what the other one's trace tells is that one's work. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { LiveAgent } from './support/live-agent.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let killed: LiveAgent
let other: LiveAgent
beforeEach(async () => {
  space = new Workspace()
  for (const name of ['a', 'b', 'both']) space.write(name, '1\n')
  killed = new LiveAgent(space)
  await killed.begin()
  other = new LiveAgent(space)
  await other.begin()
  await killed.do('echo killed > a; echo killed > both')
  await other.do('echo other > b')
  await vi.waitUntil(() => savepoint(space, ['why', 'both']).stdout.includes(killed.id), { timeout: 30_000 })
  await killed.kill()
  // It closes the one that was killed.
  expect(savepoint(space, ['run', '--', 'true']).status).toBe(0)
})
afterEach(async () => {
  await other.end()
  space.remove()
})

const state = () => ['a', 'b', 'both'].map(name => space.read(name))

it('`undo` stops it and takes its work back', async () => {
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, stdout.split('\n')[0]]).toEqual([0, expect.stringMatching(/^Undone: run_/)])
  await other.over
  expect(state()).toEqual(['killed\n', '1\n', 'killed\n'])
})

it('what both wrote is left alone; then the one that was killed goes back', async () => {
  await other.do('echo other > both')
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 3, stdout: expect.stringContaining('both: another run') })
  expect(state()).toEqual(['killed\n', '1\n', 'other\n'])
  expect(savepoint(space, ['undo']).stdout).toMatch(/^Undone: run_\w+: true\n/)
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 3, stdout: expect.stringContaining('both: edited') })
  expect(state()).toEqual(['1\n', '1\n', 'other\n'])
})
