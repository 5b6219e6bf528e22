/** A run that is taken back has nothing left that could be taken back again: what lies there since is somebody else's. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RestoreOptions, Savepoint } from '../src/engine/savepoint.ts'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint as cli, savepointInShell, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
useRuns(workspace => {
  space = workspace
})
beforeEach(async () => {
  space.write('f1', 'f1\n')
  savepoint = await space.open()
})
afterEach(() => {
  expect(savepoint.processes()).toEqual([])
})

const DAY_MS = 24 * 3_600_000
const script = 'echo gen > out; mkdir d; echo gen > d/x; echo more >> f1'
const run = async (text = script) => (await savepoint.run({ command: ['sh', '-ec', text] })).run!.id
const state = () => ['out', 'd/x', 'f1'].map(path => space.read(path))
const rollback = (id: string, options: RestoreOptions = {}) => savepoint.rollback(id, { ...options, run: id })
const before = ['gen\n', 'gen\n', 'f1\nmore\n']
const after = [undefined, undefined, 'f1\n']

/** Nothing changes, and nothing is recorded. */
async function refused(id: string, by: RegExp, hint: RegExp, options?: RestoreOptions): Promise<void> {
  const [was, count] = [state(), savepoint.operations().length]
  await expect(rollback(id, options)).rejects.toMatchObject({
    code: 'operation.none',
    message: expect.stringMatching(by),
    hint: expect.stringMatching(hint),
  })
  expect([state(), savepoint.operations().length]).toEqual([was, count])
}

describe('of a run that was undone', () => {
  it('the same work of another run stays', async () => {
    const first = await run()
    const undone = await savepoint.undo()
    const step = savepoint.operations().findLast(({ kind }) => kind === 'undo')!
    const second = await run()
    await refused(
      first,
      new RegExp(`^Cannot take back ${first}: ${step.id} \\(undo ${first}: .*\\) has done that`),
      /^`savepoint rollback snap_\w+` goes back to the state before it/,
    )
    await refused(first, /has done that/, /./, { dryRun: true })
    expect([undone.operation.state, state()]).toEqual(['undone', before])
    await rollback(second)
    expect(state()).toEqual(after)
  })

  it('what somebody has made by hand stays, directories too, and redo is named', async () => {
    const id = await run()
    await savepoint.undo()
    space.sh('echo gen > out; mkdir d')
    await refused(id, /has done that already$/, /^`savepoint redo` does it again; `savepoint rollback snap_/)
    expect(cli(space, ['rollback', id])).toMatchObject({ status: 1 })
    expect(space.sh('ls -d out d')).toBe('d\nout\n')
  })

  it('what was gone before the undo stays, too', async () => {
    const id = await run('echo gen > out')
    space.sh('rm out')
    await savepoint.undo()
    space.write('out', 'gen\n')
    await refused(id, /has done that/, /savepoint redo/)
    const other = await run('echo x > d; echo gen > out2')
    space.sh('rm d')
    await savepoint.undo()
    space.sh('echo x > d')
    await refused(other, /has done that/, /savepoint redo/)
    expect(space.read('d')).toBe('x\n')
  })

  it('after redo it stands again', async () => {
    const id = await run()
    await savepoint.undo()
    await savepoint.redo()
    await rollback(id)
    expect(state()).toEqual(after)
    await refused(id, new RegExp(`\\(take back ${id}\\)`), /^`savepoint undo` brings it again; /)
    await savepoint.undo()
    expect(state()).toEqual(before)
    await rollback(id)
    expect(state()).toEqual(after)
  })

  it('when the states of the undo are not kept any more, too', async () => {
    const id = await run()
    // Enough for the packs to be written anew.
    space.write('by hand', randomBytes(1 << 20))
    await savepoint.undo()
    space.sh('rm "by hand"')
    await run('echo other > other; echo gen > out')
    await savepoint.delete(savepoint.snapshots().flatMap(({ id, type }) => (type === 'safety' ? [id] : [])))
    await (await space.open({ now: () => Date.now() + 30 * DAY_MS })).gc()
    // What the other one has read it knows still.
    savepoint = await space.open()
    await refused(id, /has done that/, /./)
    expect(space.read('out')).toBe('gen\n')
  })
})

it('what `rollback RUN -- PATH` took back counts, the rest can still be taken back', async () => {
  const id = await run()
  await rollback(id, { paths: ['out'] })
  space.write('out', 'gen\n')
  await refused(id, /\(take back run_\w+, out\)/, /savepoint undo/, { paths: ['out'] })
  await rollback(id, { paths: ['d/x', 'f1'] })
  expect(state()).toEqual(['gen\n', undefined, 'f1\n'])
  space.write('f1', 'f1\nmore\n')
  await rollback(id)
  expect([space.sh('ls'), state()]).toEqual(['a\nf1\nout\n', ['gen\n', undefined, 'f1\nmore\n']])
  await refused(id, /has done that/, /savepoint undo/)
})

it('what was not its own, and was taken back, is not said to be', async () => {
  const other = await startRun(space, 'READY; read line; echo other > out; touch ../made; read line')
  const agent = await savepoint.run({
    command: ['sh', '-ec', 'echo gen > f1; until [ -e ../made ]; do sleep 0.02; done'],
    onStart: () => other.say('go'),
  })
  other.say('end')
  await other.ended
  await rollback(other.id)
  space.write('f1', 'f1\n')
  expect((await rollback(agent.run!.id)).changes).toEqual([])
})

it('what the undo had to leave alone can still be taken back, and nothing else', async () => {
  const id = await run()
  space.write('f1', 'edited\n')
  expect((await savepoint.undo()).restore!.leftAlone).toEqual([{ path: 'f1', why: 'edited' }])
  space.write('out', 'gen\n')
  space.write('f1', 'f1\nmore\n')
  const { changes } = await rollback(id)
  expect([changes.map(({ path }) => path), state()]).toEqual([['f1'], ['gen\n', undefined, 'f1\n']])
  expect(space.notices.at(-1)).toMatch(/^a part of it was taken back before, by op_\w+ \(undo run_/)
})

it('a rollback to the state before it has taken it back, and one to the state after it brings it again', async () => {
  const id = await run()
  const [final, initial] = savepoint.snapshots().toReversed()
  await savepoint.rollback(initial!.id)
  space.write('out', 'gen\n')
  await refused(id, /\(rollback to snap_\w+\)/, /./)
  await savepoint.rollback(final!.id)
  await rollback(id)
  expect(state()).toEqual(after)
})

it('after `undo --restart` the work of the run that was started again is not touched', async () => {
  const live = await startRun(space, 'echo gen > out; READY; read line; cat out')
  expect(cli(space, ['undo', '--restart'])).toMatchObject({ status: 0 })
  const isAgain = () => savepointJson(space, ['runs']).length === 2 && space.read('out') !== undefined
  await expect.poll(isAgain, { timeout: 60_000 }).toBe(true)
  for (const more of [[], ['--restart']]) {
    const { status, stderr } = cli(space, ['rollback', '--run', live.id, ...more])
    expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('has done that already') })
  }
  live.say('go on')
  expect(await live.ended).toMatchObject({ status: 0, stdout: expect.stringMatching(/gen\n$/) })
})

describe('runs', () => {
  const listed = () =>
    savepoint.runs().map(({ takenBack }) => takenBack && `${takenBack.kind}${takenBack.partly ? ' partly' : ''}`)
  const named = (id: string) => savepoint.operations().find(operation => operation.id === id)!.summary

  it('tells what was undone, and until when', async () => {
    const id = await run()
    expect(listed()).toEqual([undefined])
    await savepoint.undo()
    expect(listed()).toEqual(['undo'])
    expect(named(savepoint.runs()[0]!.takenBack!.operation)).toMatch(new RegExp(`^undo ${id}`))
    await savepoint.redo()
    expect(listed()).toEqual([undefined])
    await savepoint.undo()
    await run('echo other > other')
    expect(listed()).toEqual(['undo', undefined])
    const [newest, oldest] = savepointJson(space, ['runs'])
    expect([newest.taken_back, oldest.taken_back]).toEqual([
      null,
      { operation: savepoint.runs()[0]!.takenBack!.operation, kind: 'undo', partly: false },
    ])
    expect(cli(space, ['runs']).stdout).toMatch(new RegExp(`^${id} +0 +undone `, 'm'))
  })

  it('tells what was taken back, and whether only a part of it was asked for', async () => {
    const id = await run()
    await rollback(id, { paths: ['out'] })
    expect(listed()).toEqual(['rollback partly'])
    await rollback(id)
    expect(listed()).toEqual(['rollback'])
    await savepoint.undo()
    expect(listed()).toEqual(['rollback partly'])
    await savepoint.undo()
    expect(listed()).toEqual([undefined])
    await rollback(id, { withoutGit: true })
    expect(listed()).toEqual(['rollback partly'])
  })

  it('tells nothing of what was undone, and has come back by a rollback', async () => {
    const id = await run()
    const final = savepoint.snapshots().at(-1)!
    await savepoint.undo()
    await savepoint.rollback(final.id)
    expect(listed()).toEqual([undefined])
    await rollback(id)
    expect(listed()).toEqual(['rollback'])
  })

  it('tells what a rollback to a snapshot took back, until one to a later snapshot, or undo, brings it again', async () => {
    await run()
    await run('echo other > other')
    const [first, last] = [savepoint.snapshots()[0], savepoint.snapshots().at(-1)]
    await savepoint.rollback(first!.id)
    expect(listed()).toEqual(['rollback', 'rollback'])
    await savepoint.undo()
    expect(listed()).toEqual([undefined, undefined])
    await savepoint.redo()
    await savepoint.rollback(last!.id)
    expect(listed()).toEqual([undefined, undefined])
    await savepoint.rollback(first!.id, { paths: ['out'] })
    expect(listed()).toEqual([undefined, undefined])
  })

  it('that went back with the one that had started it', async () => {
    await run(`echo outer > out; ${savepointInShell} run -q -- sh -c 'echo inner > f1'`)
    await savepoint.undo()
    expect([listed(), state()]).toEqual([['undo', 'undo'], after])
  })

  it('goes on after what of it was taken back meanwhile', async () => {
    const live = await startRun(space, 'echo gen > out; READY; read line; echo gen > out')
    expect(cli(space, ['rollback', live.id, '--keep-running'])).toMatchObject({ status: 0 })
    live.say('go on')
    await live.ended
    expect(listed()).toEqual([undefined])
    await rollback(live.id)
    expect([listed(), space.read('out')]).toEqual([['rollback'], undefined])
  })
})
