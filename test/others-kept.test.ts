/** What somebody else put into the target while a run went on, and the run then destroys, is kept and named. */
import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

/** The clock of files ticks. */
const TICK_MS = 50

async function runBeside(script: string, meanwhile: string): Promise<void> {
  const live = await startRun(space, `READY; read line; ${script}`)
  await pause(TICK_MS)
  space.sh(meanwhile)
  live.say('end')
  await live.ended
}

/** Somebody edits what the run has begun with, when it can no longer be writing what it has opened. */
async function editLater(begin: string, script: string, byHand: string): Promise<void> {
  const live = await startRun(space, `${begin}; READY; read line; ${script}`)
  await untilLater(space, live.id)
  space.sh(byHand)
  live.say('end')
  await live.ended
}

/** Which paths its undo names. */
async function run(script: string, meanwhile: string): Promise<string[]> {
  await runBeside(script, meanwhile)
  return savepointJson(space, ['undo']).restore.mixed
}

/** Whether it can be found by the way that is said. */
const isHandInHistory = (path: string): boolean =>
  savepointJson(space, ['history', path]).versions.some(({ size }: { size: number }) => size === 'hand\n'.length)

it('in a directory that is older than the run and was moved there', async () => {
  space.sh(
    'for d in gone emptied written inner/below; do mkdir -p ../$d; echo hand > ../$d/f; done; mkdir dist; echo 1 > dist/f',
  )
  const mixed = await run(
    'rm -r gone; : > emptied/f; echo r >> written/f; echo r > inner/new; rm -r inner; rm dist/f',
    'mv ../gone ../emptied ../written ../inner .; touch dist/mine',
  )
  expect(mixed).toEqual(['emptied/f', 'gone/f', 'inner/below/f', 'written/f'])
  expect(mixed.filter(isHandInHistory)).toEqual(mixed)
})

it('a file that the run gives another name and removes there, and its first name leads to it', async () => {
  space.write('a', '1\n')
  const mixed = await run('mv a b; mv b c; rm c', 'echo hand > a')
  expect(mixed).toEqual(['a'])
  expect(['a', 'c'].filter(isHandInHistory)).toEqual(['c'])
  expect(savepointJson(space, ['history', 'a']).moved_to).toBe('c')
  expect(savepoint(space, ['history', 'a']).stdout).toMatch(/moved what was there to c, .*savepoint history c$/m)
})

it('in a directory that the run moves out of the target, or to where nothing is captured', async () => {
  space.write('.gitignore', 'build/\n')
  space.sh(
    'for d in out hidden; do mkdir $d; echo 1 > $d/f; echo 1 > $d/same; done; touch -d 2001-01-01 */same; mkdir build',
  )
  const mixed = await run(
    'mv out ..; echo r > ../out/f; rm -r ../out; mv hidden build/x; mv alone build/; rm -r build',
    'for d in out hidden; do echo hand > $d/f; echo hand > $d/new; done; echo hand > alone; ln out/new out/linked',
  )
  expect(mixed).toEqual(['alone', 'hidden/f', 'hidden/new', 'out/f', 'out/linked', 'out/new'])
  expect(mixed.filter(isHandInHistory)).toEqual(mixed)
})

it('in a directory that the run has moved out of one that was moved there', async () => {
  space.sh('mkdir -p ../outer/inner; echo hand > ../outer/inner/f')
  const mixed = await run('mv outer/inner apart; rm apart/f', 'mv ../outer .')
  expect(mixed).toEqual(['outer/inner/f'])
  expect(savepoint(space, ['history', 'outer/inner/f']).stderr).toContain('savepoint history apart/f')
  expect(isHandInHistory('apart/f')).toBe(true)
})

it('but not what the run has made, brought or moved itself', async () => {
  space.sh('mkdir -p ../brought/lib src/lib; echo 1 > ../brought/lib/f; echo 1 > src/lib/f; echo 1 > src/lib/g')
  space.sh('touch -d 2001-01-01 src/lib/*')
  const script =
    'mv ../brought .; rm brought/lib/f; mkdir packages; mv src packages/app; : > packages/app/lib/f; rm -r packages'
  expect(await run(script, 'true')).toEqual([])
  // What the first snapshot has by another name is not worth another one.
  const { versions } = savepointJson(space, ['history', 'packages/app/lib/f'])
  expect(versions.filter(({ size }: { size: number }) => size > 0)).toEqual([])
})

it('nor what a process of the run had open for long', async () => {
  const editor = `python3 -c '
import os, time
swap = os.open("swap", os.O_RDWR | os.O_CREAT | os.O_EXCL)
time.sleep(1.3)
os.write(swap, b"1")
os.close(swap)
os.unlink("swap")
'`
  const server = '{ sleep 1.3; echo late; exec sleep 100; } > log & sleep 1.6; rm log; sleep 1; kill $!'
  expect(await run(`${editor}; ${server}`, 'true')).toEqual([])
})

it('a link, and a file with nothing in it', async () => {
  const mixed = await run('rm -r d; rm link', 'mkdir d; touch d/empty; ln -s there link')
  expect(mixed).toEqual(['d/empty', 'link'])
  for (const path of mixed) savepointJson(space, ['revert', path])
  expect(space.sh('stat -c "%n %s" d/empty; readlink link')).toBe('d/empty 0\nthere\n')
})

it('a file with two names, written by the one and then by the run by the other', async () => {
  space.sh('for f in b c; do echo 1 > $f; ln $f $f.2; touch -d 2001-01-01 $f; done')
  const mixed = await run('echo r > b.2; echo r >> c; echo r >> c.2', 'echo hand > b')
  expect(mixed).toEqual(['b.2'])
})

it('in the target itself, which the run has moved before it removes what is in it', async () => {
  space.write('b', '1\n')
  const removal = `python3 -c 'import shutil; shutil.rmtree("../old")'`
  await runBeside(`mv "$PWD" ../old; ${removal}`, 'echo hand > b; echo hand > new')
  const opened = await space.open({ cwd: space.base, target: space.dir })
  const [kept] = opened.snapshots().filter(({ type }) => type === 'kept')
  expect(['b', 'new'].map(path => opened.read(kept!.id, space.at(path)).toString())).toEqual(['hand\n', 'hand\n'])
})

it('beside which of the own work in a directory that the run moves out, only so much is worth a record', async () => {
  await runBeside('seq 1100 | (mkdir d; cd d; split -l 1 -a 4); mv d ..', 'true')
  const snapshots = (await space.open()).snapshots()
  const [before, kept] = ['pre-run', 'kept'].map(wanted => snapshots.find(({ type }) => type === wanted))
  expect(kept!.files - before!.files).toBe(1000)
})

it('in a snapshot that the run had taken before: that one stays, however many come after it', async () => {
  space.sh('mkdir d; echo 1 > f; echo 1 > g')
  const script = 'touch d/x; rm -r d; rm f; echo r > g'
  await editLater('echo r >> f; echo r >> g', script, 'echo hand > f; echo hand > g')
  expect(savepoint(space, ['prune', '--dry-run']).stdout).toContain("1 with somebody else's files")
  expect(savepointJson(space, ['undo']).restore.mixed).toEqual(['f', 'g'])
  expect(['f', 'g'].filter(isHandInHistory)).toEqual(['f', 'g'])
})

it('in a file that the run was at before, and overwrites in place', async () => {
  const inPlace = `python3 -c 'f = open("f", "r+"); f.write("r2"); f.truncate()'`
  await editLater('echo run > f', inPlace, 'echo hand > f')
  expect(savepointJson(space, ['undo']).restore.mixed).toEqual(['f'])
  expect(isHandInHistory('f')).toBe(true)
})

it('also when the run itself writes the file again and again after that', async () => {
  expect(await run('for i in $(seq 9); do echo $i > b; done', 'echo hand > b')).toEqual(['b'])
  expect(isHandInHistory('b')).toBe(true)
})

describe('while the run goes on to destroy more than is kept of its own', () => {
  /** Each end of a test makes a snapshot, and up to three of what was destroyed before it. */
  const churn = `for i in $(seq 12); do for j in 1 2 3; do echo $i $j > tmp; rm tmp; done; ./pytest; sleep 0.2; done`
  beforeEach(() => space.sh('echo 1 > f; printf "#!/bin/sh\\n" > pytest; chmod +x pytest; sleep 0.05'))

  const stays = async () => {
    expect(savepoint(space, ['prune', '--dry-run']).stdout).toContain(
      "1 with somebody else's files: their run can be undone",
    )
    savepoint(space, ['prune', '--keep', '0'])
    expect(isHandInHistory('f')).toBe(true)
    expect(savepoint(space, ['history', 'tmp']).stderr).toContain('no snapshot has it')
  }

  it('a file that it had not named stays in the history', async () => {
    expect(await run(`echo r > f; ${churn}`, 'echo hand > f')).toEqual(['f'])
    await stays()
  }, 60_000)

  it('a file that it had written before stays in the history', async () => {
    const live = await startRun(space, `echo r > f; READY; read line; echo r > f; ${churn}`)
    await untilLater(space, live.id)
    space.sh('echo hand > f')
    live.say('end')
    await live.ended
    expect(savepointJson(space, ['undo']).restore.mixed).toEqual(['f'])
    await stays()
  }, 60_000)

  it('also where it destroys that right before its end', async () => {
    await editLater('echo r > f', 'echo r > f', 'echo hand > f')
    expect(savepoint(space, ['prune', '--dry-run']).stdout).toContain("1 with somebody else's files")
  })

  it('but not what a command of its own took long to write', async () => {
    const linker = `python3 -c 'import time; f = open("f", "w"); f.write("r"); f.flush(); time.sleep(1.3); f.write("r")'`
    await run(`${linker}; rm f`, 'true')
    expect(savepointJson(space, ['snapshots']).map(({ type }: { type: string }) => type)).toContain('kept')
    expect(savepoint(space, ['prune', '--dry-run']).stdout).not.toContain("somebody else's")
  })
})
