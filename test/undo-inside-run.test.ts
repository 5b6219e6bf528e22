/** `undo` while the run goes on: it says so, and names what works instead. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startRun } from './support/background-run.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

const cli = cliCommand.map(word => `'${word}'`).join(' ')

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

it('names the run and a rollback that works from inside', () => {
  const script = `echo a2 > a
    hint=$(${cli} undo 2>&1) && exit 9
    echo "$hint"
    ${cli} rollback $(echo "$hint" | grep -o 'run_[a-z0-9]*' | head -n 1) && cat a`
  const { status, stdout } = runCli(space, ['run', '--', 'sh', '-c', script])
  expect(stdout).toMatch(
    /Cannot undo: run_\w+ is still going\n.*`savepoint rollback run_\w+ --keep-running`.*`savepoint undo` in another terminal stops it/,
  )
  expect(stdout).toMatch(/a1$/)
  expect(status).toBe(0)
})

it('does not reach for what was done before the run, but takes back what was done in it', () => {
  const earlier = runCli(space, ['run', '--', 'sh', '-c', 'printf a2 > a'])
  expect(earlier.status).toBe(0)
  const inside = `${cli} undo; echo "first $?"
    printf a3 > a
    ${cli} rollback HEAD > /dev/null && cat a && ${cli} undo > /dev/null; echo " second $?"`
  const { stdout, stderr } = runCli(space, ['run', '--', 'sh', '-c', inside])
  expect(stderr).toMatch(/Cannot undo: run_\w+ is still going/)
  expect(stdout).toMatch(/^first [1-9]\d*\na2 second 0$/m)
  expect(space.read('a')).toBe('a3')
})

it('`rollback RUN` of the run itself takes back what it has done until then, and it goes on', () => {
  const script = `printf a2 > a; ${cli} rollback $SAVEPOINT_RUN && cat a && printf b > b`
  const { status, stdout } = runCli(space, ['run', '--', 'sh', '-c', script])
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^Took back run_\w+[\s\S]*\na1$/) })
  expect(space.read('b')).toBe('b')
})

it('what a process of the run went back to is work of the run; what somebody else did so is theirs', async () => {
  const savepoint = await space.open()
  const first = await savepoint.snapshot()
  space.write('a', 'a2')
  space.write('b', 'b')
  runCli(space, ['run', '-q', '--', 'sh', '-c', `${cli} rollback ${first.id}`])
  expect([space.read('a'), space.read('b')]).toEqual(['a1', undefined])
  await savepoint.undo()
  expect([space.read('a'), space.read('b')]).toEqual(['a2', 'b'])
  const agent = await startRun(space, 'echo own > own; read x')
  await savepoint.rollback(first.id, { keepRunning: true })
  agent.say('')
  await agent.ended
  const { restore } = await savepoint.undo()
  expect([space.read('a'), space.read('b'), space.read('own')]).toEqual(['a1', undefined, undefined])
  expect(restore!.leftAlone).toEqual(['a', 'b'].map(path => ({ path, why: 'outside' })))
  await savepoint.undo()
  expect([space.read('a'), space.read('b')]).toEqual(['a2', 'b'])
})

it('directories that came or went as a whole when a process of the run went back are its work, with all that is in them', async () => {
  const savepoint = await space.open()
  space.write('dir/deep/f', 'f')
  const withDir = await savepoint.snapshot()
  space.sh('rm -r dir')
  const without = await savepoint.snapshot()
  runCli(space, ['run', '-q', '--', 'sh', '-c', `${cli} rollback ${withDir.id}`])
  expect(space.read('dir/deep/f')).toBe('f')
  expect((await savepoint.undo()).restore!.leftAlone).toEqual([])
  expect(space.read('dir/deep/f')).toBeUndefined()
  await savepoint.redo()
  runCli(space, ['run', '-q', '--', 'sh', '-c', `${cli} rollback ${without.id}`])
  expect(space.read('dir/deep/f')).toBeUndefined()
  await savepoint.undo()
  expect(space.read('dir/deep/f')).toBe('f')
})

it('undo of another run meanwhile does not make its files work of the one that goes on', async () => {
  const savepoint = await space.open()
  const outer = await startRun(space, 'echo own > own; read x')
  space.sh('mv a moved')
  const other = await startRun(space, 'mv moved c; read x')
  other.say('')
  await other.ended
  await savepoint.undo({ keepRunning: true })
  outer.say('')
  await outer.ended
  await savepoint.undo()
  expect([space.read('moved'), space.read('a'), space.read('own')]).toEqual(['a1', undefined, undefined])
})
