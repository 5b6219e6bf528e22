/** Somebody else moves the target while a run goes on in it: what is said at the end, and undone later, is true. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

const away = () => `${space.dir} moved`
const inAway = (path: string) => readFileSync(join(away(), path), 'utf8')

it('moved by hand: the run is not said to have done it, and what it did there is its own', async () => {
  space.write('b', 'b1')
  const run = await startRun(
    space,
    'printf a2 > a; READY; read x; sleep 1.5; printf made > made; printf b2 > b; printf a3 > a',
  )
  renameSync(space.dir, away())
  run.say('')
  const { status, stderr } = await run.ended
  expect(status).toBe(0)
  expect(stderr).toContain(`savepoint: the target directory was moved while the run went on, not by it, to ${away()}\n`)
  expect(stderr).toMatch(/; 1 added, 2 modified\n/)
  expect(stderr).not.toMatch(/the run moved|outside of the protected|moves it back/)
  expect(savepoint(space, ['why', 'made'], { cwd: away() }).stdout).toContain('printf made')
  const undo = savepoint(space, ['undo'], { cwd: away() })
  expect([undo.status, undo.stderr, undo.stdout]).toEqual([0, '', expect.not.stringMatching(/somebody|moved/)])
  expect([inAway('a'), inAway('b')]).toEqual(['a1', 'b1'])
})

it('what somebody edited there meanwhile is still told from it', async () => {
  const run = await startRun(space, 'printf a2 > a; READY; read x')
  renameSync(space.dir, away())
  writeFileSync(join(away(), 'theirs'), 'theirs')
  run.say('')
  expect((await run.ended).status).toBe(0)
  expect(savepoint(space, ['undo'], { cwd: away() }).status).toBe(3)
  expect([inAway('a'), inAway('theirs')]).toEqual(['a1', 'theirs'])
})

it('replaced by hand: it is said that it was, not by whom', async () => {
  const run = await startRun(space, 'READY; read x')
  renameSync(space.dir, away())
  mkdirSync(space.dir)
  run.say('')
  expect((await run.ended).stderr).toContain(
    `the target directory was replaced while the run went on, not by it, by another one; the old one is at ${away()}`,
  )
})

it('replaced by hand: what is there then is not the work of the run, whatever it is called', async () => {
  const run = await startRun(space, 'printf a2 > a; printf made > n; READY; read x; printf later > b')
  renameSync(space.dir, away())
  mkdirSync(space.dir)
  for (const name of ['a', 'n']) space.write(name, 'theirs')
  run.say('')
  expect((await run.ended).status).toBe(0)
  expect(inAway('b')).toBe('later')
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, space.read('a'), space.read('n'), space.read('b')]).toEqual([3, 'theirs', 'theirs', undefined])
  expect(stdout).toContain('  a: changed by somebody outside of the run while it went on\n')
})

it('where nobody can tell who it was, nobody is named, and undo moves it back', async () => {
  const run = await startRun(space, 'READY; read x', { args: ['--tracer', 'none'] })
  renameSync(space.dir, away())
  run.say('')
  expect((await run.ended).stderr).toContain(
    `the target directory was moved while the run went on to ${away()}; undo moves it back\n`,
  )
  expect(savepoint(space, ['undo'], { cwd: away() }).status).toBe(0)
  expect(space.read('a')).toBe('a1')
})
