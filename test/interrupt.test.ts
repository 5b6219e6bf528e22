/** Ctrl-C when a restore has begun: it is completed, and that is what is said. Before: e2e-terminal.test.ts. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCli, sourceCommand } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'one')
  runCli(space, ['snapshot', '-m', 'good'])
  space.write('a', 'two')
})
afterEach(() => space.remove())

const interrupted = (point: string, args: string[]) => {
  const preload = `--import=${new URL('support/interrupt-at.ts', import.meta.url)}`
  return runCli(space, args, { env: { ...space.env, NODE_OPTIONS: preload, INTERRUPT_AT: point } }, sourceCommand)
}

it('while it restores: it says that it will be completed, and completes it', () => {
  const { status, stdout, stderr } = interrupted('restore:stage', ['rollback', 'good'])
  expect(stderr).toBe(
    'savepoint: it has begun and will be completed; Ctrl-C again stops at once, and a later command completes it\n',
  )
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('Rolled back to') })
  expect(space.read('a')).toBe('one')
})

it('of several reverts: the one that has begun is completed, the next is not begun', () => {
  space.write('b', 'new')
  const { status, stderr } = interrupted('restore:stage', ['revert', 'a', 'b', '--from', 'good'])
  expect(stderr).toMatch(/will be completed.*\n.*[cC]ancelled/)
  expect([status, space.read('a'), space.read('b')]).toEqual([130, 'one', 'new'])
})

it.each(['a small tree', 'a tree that is captured meanwhile'])(
  'before the command is there, in %s: it is not started',
  tree => {
    if (tree !== 'a small tree') for (let i = 0; i < 3000; i++) space.write(`d${i % 50}/${i}`, String(i))
    const { status, stderr } = interrupted('run:launching', ['run', '--', 'sh', '-c', 'echo three > a'])
    expect(stderr).toMatch(tree === 'a small tree' ? /protecting .*snap_/ : /being captured/)
    expect([status, space.read('a')]).toEqual([130, 'two'])
    expect(runCli(space, ['runs']).stdout).toMatch(/^run_\w+ +125 /m)
    expect(runCli(space, ['run', '--', 'sh', '-c', 'echo three > a']).status).toBe(0)
    runCli(space, ['undo'])
    expect(space.read('a')).toBe('two')
  },
)
