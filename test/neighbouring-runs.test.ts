/** A run in a directory inside of the target, or around it, has its files changed by a restore, too: it is treated as one of the target's own. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { onFailpoint } from '../src/store/failpoint.ts'
import { isRunning, startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
  space.write('sub/f', 'f1')
  for (const cwd of [space.at('sub'), space.dir]) savepointJson(space, ['snapshot', '-m', 'good'], { cwd })
})

const sub = () => ({ cwd: space.at('sub') })
const inSub = (script: string, args: string[] = []) => startRun(space, script, { args, spawn: sub() })
const pid = () => Number(readFileSync(join(space.base, 'pid'), 'utf8'))
const stateOf = (pid: number) => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1]!

it.each(['auto', 'none'])('inside, tracer %s: a rollback of the outer target names it, and stops it', async tracer => {
  const run = await inSub('printf f2 > f; READY; sleep 300', ['--tracer', tracer])
  const planned = savepoint(space, ['rollback', 'good', '--dry-run'])
  expect(planned).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(new RegExp(`${run.id} \\(.*\\) would be stopped first`)),
  })
  expect(savepointJson(space, ['rollback', 'good', '--dry-run']).would_stop).toEqual([run.id])
  expect(await isRunning(run.child.pid!)).toBe(true)
  const { status, stderr } = savepoint(space, ['rollback', 'good'])
  expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${run.id}`) })
  const end = await run.ended
  expect(end.stderr).toContain(`the run was stopped for \`savepoint rollback good -t ${space.dir}\``)
  expect(space.read('sub/f')).toBe('f1')
  // Its work is in its own history.
  expect(savepoint(space, ['undo'], sub()).status).toBe(0)
  expect(savepointJson(space, ['runs'], sub())[0]).toMatchObject({ id: run.id, signal: 'SIGTERM' })
})

it.each(['auto', 'none'])(
  '--keep-running, tracer %s: it is held still while the files go back, and goes on',
  async tracer => {
    const run = await inSub('printf f2 > f; echo $$ > ../../pid; READY; read x; cat f', ['--tracer', tracer])
    const savepoint = await space.open()
    const states: string[] = []
    const forget = onFailpoint('restore:journal', () => void states.push(stateOf(pid())))
    await savepoint.rollback('good', { keepRunning: true }).finally(forget)
    expect([states, space.notices]).toEqual([['T'], []])
    run.say('')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('f1') })
  },
)

it('so it is for an undo of the outer target', async () => {
  space.write('sub/f', 'f0')
  const savepoint = await space.open()
  await savepoint.rollback('good')
  const run = await inSub('echo $$ > ../../pid; READY; read x; cat f')
  const states: string[] = []
  const forget = onFailpoint('restore:journal', () => void states.push(stateOf(pid())))
  await savepoint.undo().finally(forget)
  expect(states).toEqual(['T'])
  run.say('')
  expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('f0') })
})

it('whoever holds it is killed: it goes on', async () => {
  const run = await inSub('printf f2 > f; echo $$ > ../../pid; READY; read x; echo > ../../went-on; read x')
  const env = { ...space.env, SAVEPOINT_FAILPOINT: 'restore:journal' }
  expect(savepoint(space, ['rollback', 'good', '--keep-running'], { env }).signal).toBe('SIGKILL')
  run.say('')
  await vi.waitUntil(() => existsSync(join(space.base, 'went-on')), { timeout: 60_000 })
  expect(stateOf(pid())).not.toBe('T')
  run.say('')
  expect((await run.ended).status).toBe(0)
})

it('nothing is stopped for what cannot be done, or does not reach it', async () => {
  const run = await inSub('READY; read x')
  space.write('a', 'a2')
  expect(savepoint(space, ['rollback', 'nothing-of-the-kind']).status).toBe(12)
  const planned = savepoint(space, ['rollback', 'good', '--dry-run', '--json', '--', 'a'])
  expect(JSON.parse(planned.stdout).would_stop).toEqual([])
  expect(savepoint(space, ['rollback', 'good', '--', 'a'])).toMatchObject({ status: 0, stderr: '' })
  expect(space.read('a')).toBe('a1')
  run.say('')
  expect((await run.ended).status).toBe(0)
})

it('around: a rollback of the inner target stops it, unless it comes from inside of it', async () => {
  const script = `printf f2 > sub/f; (cd sub && ${savepointInShell} rollback good 2>&1); cat sub/f; printf f3 > sub/f; READY; sleep 300`
  const run = await startRun(space, script)
  expect(savepointJson(space, ['rollback', 'good', '--dry-run'], sub()).would_stop).toEqual([run.id])
  const { status, stderr } = savepoint(space, ['rollback', 'good'], sub())
  expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${run.id}`) })
  expect(space.read('sub/f')).toBe('f1')
  const { stdout, signal } = await run.ended
  expect([signal, stdout]).toEqual(['SIGTERM', expect.stringContaining('f1READY')])
})

it('one inside of another: the inner target goes back, whoever started its run', async () => {
  const inner = `cd sub && exec ${savepointInShell} run -- sh -c 'printf f2 > f; echo INNER >&2; echo > ../../inner; read x; cat f'`
  const run = await startRun(space, `READY; ${inner}`)
  await vi.waitUntil(() => existsSync(join(space.base, 'inner')), { timeout: 60_000 })
  const { status, stderr } = savepoint(space, ['rollback', 'good', '--keep-running'], sub())
  expect({ status, stderr }).toEqual({
    status: 0,
    stderr: expect.stringMatching(new RegExp(`${run.id} \\(.*\\) goes on: a run of this directory is a part of it`)),
  })
  run.say('')
  expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('f1') })
})
