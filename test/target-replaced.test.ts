/** A run puts another directory in the place of its target, and what somebody did in the old one meanwhile is named and kept. */
import { existsSync, rmSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import { editedBetween, startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepointJson } from './support/built-cli.ts'
import { runCli } from './support/cli.ts'
import { killedRun } from './support/killed-run.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
  space.write('sub/one', '1')
  space.write('sub/two', '2')
})

const history = (path: string): string => runCli(space, ['history', path]).stdout

const copied = 'cp -a $W $W.copy; mv $W $W.old; mv $W.copy $W'
it.each([
  ['left somewhere', copied],
  ['left somewhere before it is copied back', 'mv $W $W.old; cp -a $W.old $W'],
  ['removed', `${copied}; rm -rf $W.old`],
  ['removed without a guard', `${copied}; python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' $W.old`],
])('replaced by a copy of itself and %s: the edits that came with it are named', async (_, script) => {
  await editedBetween(space, ':', script)
  const { stdout } = runCli(space, ['undo'])
  expect(stdout).toMatch(
    /May also hold somebody else's edit, .*: sub\/new, sub\/two\nTo have that back: savepoint revert /,
  )
  expect([space.read('sub/two'), space.read('sub/new')]).toEqual(['2', undefined])
})

it('and removed by somebody else: the edits that came with the copy are named', async () => {
  const run = await startRun(space, `cd /; W='${space.dir}'; echo READY; read go; ${copied}; read again`)
  await untilLater(space, run.id)
  space.write('sub/two', 'edited by hand')
  run.say('go')
  await vi.waitUntil(() => existsSync(`${space.dir}.old`) && existsSync(space.dir), { timeout: 60_000, interval: 20 })
  rmSync(`${space.dir}.old`, { recursive: true })
  run.say('again')
  await run.ended
  expect(runCli(space, ['undo']).stdout).toMatch(/May also hold somebody else's edit, .*: sub\/two\n/)
})

it('and removed: what is edited in the new one then is named, although the run goes on', async () => {
  await editedBetween(space, `${copied}; rm -rf $W.old`, 'for i in 1 2 3; do echo $i > $W/own$i; sleep 0.1; done')
  expect(runCli(space, ['undo']).stdout).toMatch(/May also hold somebody else's edit, .*: sub\/new, sub\/two\n/)
})

it.each([
  ['', ''],
  [', also where the run removes the old one', '; rm $W/a; rm -rf $W.old'],
  [' without a guard', "; rm $W/a; python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' $W.old"],
])('what somebody removed in it before is named%s', async (_, last) => {
  const run = await startRun(space, `cd /; W='${space.dir}'; echo READY; read go; ${copied}${last}`)
  await untilLater(space, run.id)
  rmSync(space.at('sub/two'))
  run.say('go')
  await run.ended
  expect(runCli(space, ['undo']).stdout).toMatch(/somebody else.*: sub\/two\n/)
  expect([space.read('sub/two'), space.read('a')]).toEqual(['2', 'a1'])
})

it('replaced by an older copy of itself: the edits are kept', async () => {
  const said = await editedBetween(space, 'cp -a $W $W.copy', 'mv $W $W.old; mv $W.copy $W')
  const [, revert] = /perhaps by somebody else, .*: sub\/new, sub\/two; .*: savepoint (revert .*)\n/.exec(said)!
  rmSync(`${space.dir}.old`, { recursive: true })
  expect(runCli(space, revert!.split(' ')).status).toBe(0)
  expect([space.read('sub/two'), space.read('sub/new')]).toEqual(['edited by hand', 'made by hand'])
})

it.each([
  ['an empty one', 'mkdir $W; echo zz > $W/x'],
  ['one in which the run makes the file anew', 'mkdir -p $W/sub; echo zz > $W/sub/two'],
])('replaced by %s: the edits are kept and named', async (_, second) => {
  const said = await editedBetween(space, ':', `mv $W $W.old; ${second}`)
  const old = `perhaps by somebody else, in the directory that it moved to ${space.dir}.old: sub/new, sub/two; to have`
  expect(said).toMatch(/perhaps by somebody else, .*: sub\/new, sub\/two; to have that back .*: savepoint revert /)
  expect(said).toContain(old)
  expect(said).not.toContain('took it away')
  rmSync(`${space.dir}.old`, { recursive: true })
  const { stdout, stderr } = runCli(space, ['undo'])
  expect(stderr).toContain(old)
  expect(stdout).toMatch(/somebody else.*sub\/new/)
  expect(space.read('sub/two')).toBe('2')
  expect(history('sub/new')).toMatch(/^snap_\w+ +new /m)
})

it.each([
  ['left somewhere', 'mv $W $W.old; mv $W.copy $W'],
  ['removed', 'mv $W $W.old; mv $W.copy $W; rm -rf $W.old'],
  [
    'left, and it goes on writing',
    'mv $W $W.old; mv $W.copy $W; for i in $(seq 13); do echo $i >> $W/log; sleep 0.2; done',
  ],
  ['copied back', 'mv $W $W.old; cp -a $W.old $W; cp $W.copy/a $W.copy/b $W'],
  ['left, and something removed of the new one', 'mv $W $W.old; mv $W.copy $W; rm $W/moved/one'],
  [
    'removed, and then something of the new one',
    'mv $W $W.old; mv $W.copy $W; rm -rf $W.old; sleep 2.5; echo own > $W/b; rm -rf $W/moved',
  ],
])('what the run itself did in the old one and in the new one, the old one %s, is its own', async (_, last) => {
  const savepoint = await space.open()
  const script = `cd /; W='${space.dir}'; mv $W/sub $W/moved; echo own > $W/moved/two; cp -a $W $W.copy; echo own > $W.copy/a
    echo own > $W.copy/b; sleep 1.2; ${last}`
  await savepoint.run({ command: ['sh', '-c', script] })
  expect(space.notices.filter(text => text.includes('somebody else'))).toEqual([])
  const { restore } = await savepoint.undo()
  expect([restore!.leftAlone, restore!.mixed]).toEqual([[], []])
  expect([space.read('a'), space.read('b'), space.read('sub/two')]).toEqual(['a1', undefined, '2'])
})

it('an old one in which nothing has changed is captured no more', async () => {
  const savepoint = await space.open()
  await savepoint.run({ command: ['sh', '-c', `cd /; W='${space.dir}'; mv $W $W.old; mkdir $W`] })
  expect(savepointJson(space, ['log']).map(({ type }: { type: string }) => type)).toEqual(['final', 'pre-run'])
})

it('by a run in which Savepoint was killed: status says how to take that back', () => {
  expect(killedRun(space, `cd /; W='${space.dir}'; ${copied}; echo run > $W/sub/two`)).toBe('SIGKILL')
  const { status, stderr } = runCli(space, ['status'])
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/hint: If run_\w+ did that, in which Savepoint was killed: savepoint undo\. /),
  ])
  expect(runCli(space, ['undo']).status).toBe(0)
  expect(space.read('sub/two')).toBe('2')
})
