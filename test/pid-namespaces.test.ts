/** Processes of several containers share a home: the number of one says nothing in another, nor when it was started again. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

const container = ['unshare', '-pf', '--kill-child', '--mount-proc']
const possible = spawnSync(container[0]!, [...container.slice(1), 'true']).status === 0
const needs = 'the right to make a pid namespace'

/** What comes after it has that number there. */
const numbered = (pid: number): string[] => [
  ...container,
  ...['sh', '-c', `echo ${pid - 1} > /proc/sys/kernel/ns_last_pid; "$@"; exit $?`, 'sh'],
]
const unused = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) - 10

gated(possible, needs, 'a run that died with its container is interrupted, although there is a process 1', async () => {
  const { child, ended } = await startRun(space, 'echo a2 > a; READY; sleep 100', { before: container })
  child.kill('SIGKILL')
  await ended
  const [run] = savepointJson(space, ['runs'])
  expect(run).toMatchObject({ pid: 1, interrupted: true })
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 0, stdout: expect.stringContaining(`Undone: ${run.id}`) })
  expect(space.read('a')).toBe('a1')
})

gated(possible, needs, 'a run of another container goes on: undo stops it before anything goes back', async () => {
  const { id, ended } = await startRun(space, 'echo a2 > a; READY; sleep 100', { before: numbered(unused) })
  expect(savepointJson(space, ['runs'])).toMatchObject([{ id, pid: unused, interrupted: false, ended_at: null }])
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${id}`) })
  expect((await ended).stderr).toContain('the run was stopped for `savepoint undo`')
  expect(space.read('a')).toBe('a1')
})

gated(
  possible,
  needs,
  'who has the number of its supervisor here is not taken for a suspended one, and woken',
  async () => {
    const bystander = spawn('sleep', ['100'])
    try {
      const stateOf = () => /\) (\S)/.exec(readFileSync(`/proc/${bystander.pid}/stat`, 'latin1'))![1]
      bystander.kill('SIGSTOP')
      await expect.poll(stateOf).toBe('T')
      const { ended } = await startRun(space, 'echo a2 > a; READY; sleep 100', { before: numbered(bystander.pid!) })
      expect(savepointJson(space, ['runs'])).toMatchObject([{ pid: bystander.pid }])
      expect(savepoint(space, ['undo']).status).toBe(0)
      await ended
      expect([space.read('a'), stateOf()]).toEqual(['a1', 'T'])
    } finally {
      bystander.kill('SIGKILL')
      await once(bystander, 'close')
    }
  },
)

it('a program that goes on after its run holds nothing of it', async () => {
  const library = await space.open()
  await library.run({ command: ['true'] })
  const open = readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return []
    }
  })
  expect(open.filter(path => path.startsWith(space.home) && path.endsWith('/lock'))).toEqual([])
})
