/** What somebody stages while a run goes on, by commands that change nothing but git's index. */
import { beforeEach, expect, it } from 'vitest'
import { startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepointJson } from './support/built-cli.ts'
import { LiveAgent } from './support/live-agent.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})
beforeEach(() => {
  space.sh('git init -q; for each in a f1 f2 f3; do echo 1 > $each; done; git add .; git commit -qm first')
  space.sh('echo 2 > f3; git add f3')
})

const staged = () => space.sh('git diff --cached --name-status; git ls-files --stage')
const outside = [{ path: '.git', why: 'outside' }]

it.each([
  ['2', 'git rm -q --cached f2; git restore --staged f3'],
  ['2', 'git mv f2 f4; git update-index --chmod=+x f1'],
  ['4', 'git rm -q f2; echo new > f5; git add -N f5'],
  ['4', 'git restore --staged f3'],
])(
  'in an index of version %s stays when the run is taken back, whether that has looked or not: %s',
  async (version, command) => {
    space.sh(`git update-index --index-version ${version}`)
    const look = 'touch f1; git status > /dev/null'
    const run = await startRun(space, `${look}; echo r >> a; READY; read line; git diff > /dev/null`)
    await untilLater(space, run.id)
    space.sh(command)
    const then = staged()
    run.say('end')
    await run.ended
    const { left_alone } = savepointJson(space, ['undo']).restore
    expect(left_alone).toEqual(expect.arrayContaining(outside))
    expect([staged(), space.read('a')]).toEqual([then, '1\n'])
  },
)

it('stays also while the run goes on', async () => {
  const run = await startRun(space, 'echo r >> a; READY; read line')
  await untilLater(space, run.id)
  space.sh('git rm -q --cached f2')
  const then = staged()
  expect(savepointJson(space, ['rollback', run.id, '--keep-running']).left_alone).toEqual(outside)
  expect([staged(), space.read('a')]).toEqual([then, '1\n'])
  run.say('end')
  await run.ended
})

it.each([['touch f1; git status > /dev/null'], [':']])(
  'the index of a run that staged something goes back, although others have looked: %s',
  async look => {
    const before = staged()
    const run = await startRun(space, `git rm -q --cached f2; READY; read line; ${look}`)
    await untilLater(space, run.id)
    space.sh('touch f1; git status')
    run.say('end')
    await run.ended
    savepointJson(space, ['undo'])
    expect(staged()).toBe(before)
  },
)

it('goes back, and is named, where the run has worked in the repository, before or afterwards', async () => {
  for (const script of ['git commit -qm own; READY; read line', 'echo r > a; READY; read line; git commit -qam own']) {
    const before = staged()
    const run = await startRun(space, script)
    await untilLater(space, run.id)
    space.sh('git rm -q --cached f2')
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    expect([restore.mixed, staged()]).toEqual([['.git'], before])
  }
})

it('by another run stays when the one is taken back, and one that only looks keeps nothing from going back', async () => {
  const [one, other] = [new LiveAgent(space), new LiveAgent(space)]
  await one.begin()
  await other.begin()
  await one.do('echo r > a; touch f1; git status > /dev/null')
  await other.do('git rm -q --cached f2')
  const then = staged()
  await one.end()
  await other.end()
  savepointJson(space, ['rollback', '--run', one.id])
  expect([staged(), space.read('a')]).toEqual([then, '1\n'])
  expect(savepointJson(space, ['rollback', '--run', other.id]).left_alone).toEqual([])
  expect(staged()).toContain('f2')
})
