/** A run puts another directory in the place of its target, goes on in there, and destroys what somebody has edited in it since. */
import { existsSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { editedBetween, startRun, untilLater, useRuns } from './support/background-run.ts'
import { runCli } from './support/cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
  space.write('sub/one', '1')
  space.write('sub/two', '2')
})

const swapped = 'cp -a $W $W.copy; mv $W $W.old; mv $W.copy $W'

const exchange = `exchange() { python3 -c 'import ctypes, os, sys; a, b = map(os.fsencode, sys.argv[1:]); ctypes.CDLL(None).renameat2(-100, a, -100, b, 2)' "$@"; }`

/** That is to be brought back from what `history` lists. */
function hasIn(path: string, text: string): boolean {
  const { stdout } = runCli(space, ['history', path])
  const versions = [...stdout.matchAll(/^(snap_\w+)/gm)].map(([, id]) => id!)
  return versions.some(id => runCli(space, ['show', id, path]).stdout === text)
}

const overwritten = 'echo run > $W/sub/two; echo run > $W/sub/new'
it.each([
  ['overwrites', swapped, overwritten],
  ['removes with a guard', swapped, 'rm -rf $W/sub'],
  ['removes without one', swapped, "python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' $W/sub"],
  ['moves something over', swapped, 'echo run > $W/t; mv $W/t $W/sub/two; echo run > $W/t; mv $W/t $W/sub/new'],
  ['overwrites, the old one gone,', `${swapped}; rm -rf $W.old`, overwritten],
  ['removes, the old one gone,', `${swapped}; rm -rf $W.old`, 'rm -rf $W/sub'],
  ['replaces again, and removes,', swapped, 'cp -a $W.old $W.3; mv $W $W.old2; mv $W.3 $W; rm -rf $W.old2'],
  ['replaces again,', swapped, 'cp -a $W.old $W.3; mv $W $W.old2; mv $W.3 $W'],
  [
    'replaces with one from before, and removes,',
    `cp -a $W $W.3; ${swapped}`,
    'mv $W $W.old2; mv $W.3 $W; rm -rf $W.old2',
  ],
  ['removes with the whole of both', swapped, 'rm -rf $W.old; rm -rf $W; mkdir -p $W/sub; echo 2 > $W/sub/two'],
  ['puts aside for the first one, and removes,', swapped, 'mv $W $W.3; mv $W.old $W; rm -rf $W.3'],
  ['overwrites after a move that fails', 'mv $W $W/in', overwritten],
  ['removes after a move that is taken back', 'mv $W $W.old; mv $W.old $W', 'rm -f $W/sub/two $W/sub/new'],
  ['removes with a new directory, which came with the edits,', ':', `${swapped}; rm -rf $W/sub`],
])('what the run %s is kept and named', async (_, first, second) => {
  const said = await editedBetween(space, first, second)
  const undone = runCli(space, ['undo'])
  if (existsSync(`${space.dir}.old2`))
    for (const text of [said, undone.stderr])
      expect(text).toContain(`in the directory that it moved to ${space.dir}.old2: sub/new`)
  for (const [path, text] of [
    ['sub/two', 'edited by hand'],
    ['sub/new', 'made by hand'],
  ] as const) {
    expect(hasIn(path, text)).toBe(true)
    expect(said + undone.stdout + undone.stderr).toMatch(new RegExp(`somebody else.*${path}`))
  }
  expect(space.read('sub/two')).toBe('2')
})

it('by a clone, of which git then destroys what somebody did: nothing else is named', async () => {
  for (const words of [
    ['init', '-q'],
    ['add', '.'],
    ['commit', '-qm', 'one'],
  ])
    space.git(...words)
  const said = await editedBetween(
    space,
    'git clone -q $W $W.copy; mv $W $W.old; mv $W.copy $W',
    'cd $W; git checkout -q -f .; git clean -fdq; rm -rf $W.old',
  )
  const { stdout, stderr } = runCli(space, ['undo'])
  expect(said).not.toContain('somebody else')
  expect(stderr).toMatch(
    /somebody else, before git checkout -q -f . took it away: sub\/new, sub\/two; to have that back/,
  )
  const named = [...stdout.matchAll(/somebody else.*: (.*)/g)].map(([, paths]) => paths)
  expect(named).toEqual(['sub/two', 'sub/new'])
  expect([hasIn('sub/two', 'edited by hand'), hasIn('sub/new', 'made by hand')]).toEqual([true, true])
})

it.each([
  ['the old one left', swapped, overwritten],
  ['the old one gone', `${swapped}; rm -rf $W.old`, 'echo run > $W/sub/two; rm $W/sub/one; mv $W/a $W/b'],
  ['by hard links', 'cp -al $W $W.copy; mv $W $W.old; mv $W.copy $W', 'rm -rf $W/sub; rm -rf $W.old'],
  ['twice', swapped, 'cp -a $W $W.3; mv $W $W.old2; mv $W.3 $W; rm -rf $W.old2; echo run > $W/sub/two; rm -r $W.old'],
  ['and put back', swapped, 'echo run > $W/sub/two; mv $W $W.new; mv $W.old $W; rm -rf $W.new; echo run > $W/sub/two'],
  ['which could not be removed at first', 'rmdir $W 2>&1', 'mv $W $W.bak; mkdir $W; echo n > $W/n; rm -rf $W.bak'],
  ['which was empty by then', 'cp -a $W $W.2; rm -rf $W/*', 'mv -T $W.2 $W; echo run > $W/a; rm $W/sub/one'],
  ['which was removed before', 'cp -a $W $W.2; echo n > $W.2/n; rm -rf $W', 'mv $W.2 $W; sleep 1.3; rm $W/n'],
  ['by an exchange', 'cp -a $W $W.3', 'exchange $W $W.3; echo run > $W/sub/two; rm -rf $W/sub; rm -rf $W.3'],
])('what the run itself does in the new one, %s, is its own', async (_, first, second) => {
  const savepoint = await space.open()
  const script = `${exchange}; cd /; W='${space.dir}'; ${first}; sleep 1.3; ${second}; sleep 1.3; echo run > $W/new; rm $W/new`
  await savepoint.run({ command: ['sh', '-c', script] })
  expect(space.notices.filter(text => text.includes('somebody else'))).toEqual([])
  const { restore } = await savepoint.undo()
  expect([restore!.leftAlone, restore!.mixed]).toEqual([[], []])
  expect([space.read('a'), space.read('sub/two')]).toEqual(['a1', '2'])
})

it.each([
  ['removes the old one', swapped, 'rm -rf $W.old'],
  ['removes it without a guard', swapped, "python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' $W.old"],
  ['moves it elsewhere', swapped, 'mv $W.old $W.trash'],
  ['takes something out of it', swapped, 'mv $W.old/sub/two $W.two; rm $W.old/sub/one'],
  ['overwrites it there', swapped, 'echo run > $W.old/sub/two; echo run > $W.old/sub/new'],
  ['could not remove it at first', `rmdir $W 2>&1; ${swapped}`, 'rm -rf $W.old'],
])('what is in the new one is not the work of a run that %s', async (_, first, second) => {
  await editedBetween(space, first, second)
  const { stdout } = runCli(space, ['undo'])
  expect(stdout).toMatch(/somebody else.*: sub\/new, sub\/two\n/)
})

it('what somebody does in the old one is named where the run puts that back, too', async () => {
  const run = await startRun(
    space,
    `cd /; W='${space.dir}'; ${swapped}; echo READY; read go; mv $W $W.new; mv $W.old $W; rm -rf $W.new`,
  )
  await untilLater(space, run.id)
  writeFileSync(`${space.dir}.old/sub/one`, 'edited by hand')
  space.write('sub/two', 'edited by hand')
  run.say('go')
  await run.ended
  const { stdout, stderr } = runCli(space, ['undo'])
  expect(stdout).toMatch(/somebody else.*: sub\/one\n/)
  expect(stderr).toMatch(/somebody else, before rm -rf .*\.new took it away: sub\/two; to have that back/)
  expect([hasIn('sub/one', 'edited by hand'), hasIn('sub/two', 'edited by hand')]).toEqual([true, true])
})

it('a move that fails, and is taken back, hides nothing', async () => {
  await editedBetween(space, 'echo run > $W/sub/two', 'mv $W $W.old; mv $W.new $W 2>&1 || mv $W.old $W')
  const { stdout } = runCli(space, ['undo'])
  expect(stdout).toMatch(/somebody else.*: sub\/two\n/)
})

it('the snapshot that is named has what somebody did, and not what the run did in the old one', async () => {
  const said = await editedBetween(
    space,
    swapped,
    'echo over > $W.old/sub/two; echo over > $W.old/sub/new; rm -rf $W/sub',
  )
  const [, revert] = /before rm -rf .* took it away: sub\/new, sub\/two; .*: savepoint (revert .*)\n/.exec(said)!
  expect(runCli(space, revert!.split(' ')).status).toBe(0)
  expect([space.read('sub/two'), space.read('sub/new')]).toEqual(['edited by hand', 'made by hand'])
})
