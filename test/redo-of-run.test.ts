/** `redo` of a run does again what `undo` took back, and nothing else; what ran inside of it goes and comes with it. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  for (const name of ['f1', 'f2', 'keep']) space.write(name, `${name}\n`)
  savepoint = await space.open()
})
afterEach(() => space.remove())

const run = async (script: string) => (await space.open()).run({ command: ['sh', '-ec', script] })
const until = (name: string) => `until [ -e ../${name} ]; do sleep 0.02; done`
const reached = (name: string) => vi.waitUntil(() => existsSync(join(space.base, name)), { timeout: 60_000 })
const say = (name: string) => writeFileSync(join(space.base, name), '')
const state = (...names: string[]) => names.map(name => space.read(name))

it('brings back a directory of the run that somebody had emptied before the undo', async () => {
  await run('mkdir -p new/deep; echo A > new/deep/file')
  space.sh('mv new/deep/file mine')
  await savepoint.undo()
  expect(existsSync(space.at('new'))).toBe(false)
  await savepoint.redo()
  expect([existsSync(space.at('new/deep')), state('mine')]).toEqual([true, ['A\n']])
})

describe('what somebody else did while the run went on', () => {
  const deletedMeanwhile = async () => {
    const agent = run(`echo A > f1; touch ../begun; ${until('deleted')}`)
    await reached('begun')
    space.sh('rm keep')
    say('deleted')
    await agent
  }

  it('is not done again: what undo had left alone, and its owner put back, stays', async () => {
    await deletedMeanwhile()
    await savepoint.undo()
    space.write('keep', 'back\n')
    const { restore } = await savepoint.redo()
    expect([restore!.leftAlone, state('f1', 'keep')]).toEqual([[], ['A\n', 'back\n']])
    await savepoint.undo()
    expect(state('f1', 'keep')).toEqual(['f1\n', 'back\n'])
  })

  it('does not stand in the way of an undo when the run itself changed nothing', async () => {
    await run('echo A > f1')
    const agent = run(`touch ../begun; ${until('deleted')}`)
    await reached('begun')
    space.sh('rm keep')
    say('deleted')
    await agent
    const { restore, operation } = await savepoint.undo()
    expect([restore!.leftAlone, operation.state]).toEqual([[{ path: 'keep', why: 'outside' }], 'undone'])
    await savepoint.undo()
    expect(state('f1', 'keep')).toEqual(['f1\n', undefined])
  })

  it('is no reason to ask for --all either', async () => {
    space.write('sub/file', 'one\n')
    const agent = run(`echo A > sub/file; touch ../begun; ${until('deleted')}`)
    await reached('begun')
    space.sh('rm keep')
    say('deleted')
    await agent
    await savepoint.undo()
    const inSub = runCli(space, ['redo'], { cwd: space.at('sub') })
    expect([inSub.status, state('sub/file')]).toEqual([0, ['A\n']])
  })
})

it('of two runs at once: both come back as they were, what one had for a while does not', async () => {
  const first = run(`echo A > f1; touch ../first; ${until('second')}; echo A2 > f1`)
  await reached('first')
  const second = run(`echo B1 > f2; echo x > tmpfile; touch ../second; ${until('ended')}; rm tmpfile; echo B2 > f2`)
  await first
  say('ended')
  await second
  const names = ['f1', 'f2', 'tmpfile']
  for (const round of [1, 2]) {
    const undone = [await savepoint.undo(), await savepoint.undo()]
    expect([round, state(...names)]).toEqual([round, ['f1\n', 'f2\n', undefined]])
    const redone = [await savepoint.redo(), await savepoint.redo()]
    expect([round, state(...names)]).toEqual([round, ['A2\n', 'B2\n', undefined]])
    expect([...undone, ...redone].flatMap(({ restore }) => restore!.leftAlone)).toEqual([])
  }
})

it('an edit before the undo stays through undo and redo, one after it is left alone and named', async () => {
  await run('echo A > f1; echo B > f2')
  space.write('f1', 'mine\n')
  expect((await savepoint.undo()).restore!.leftAlone).toEqual([{ path: 'f1', why: 'edited' }])
  space.write('f2', 'mine, too\n')
  space.write('new', 'n\n')
  expect((await savepoint.redo()).restore!.leftAlone).toEqual([{ path: 'f2', why: 'edited' }])
  expect(state('f1', 'f2', 'new')).toEqual(['mine\n', 'mine, too\n', 'n\n'])
})

it('where there was nothing left to take back there is nothing to do again', async () => {
  await run('echo A > made')
  space.sh('rm made')
  await savepoint.undo()
  const { restore } = await savepoint.redo()
  expect([restore!.changes, state('made')]).toEqual([[], [undefined]])
  space.write('made', 'mine\n')
  expect((await savepoint.undo()).restore!.leftAlone).toEqual([{ path: 'made', why: 'edited' }])
})

it('what redo needs is there after gc, and what was purged meanwhile does not come back', async () => {
  await run('echo A > f1; echo secret > token')
  // The state after the undo is no snapshot's.
  space.write('mine', 'never captured\n')
  await savepoint.undo()
  space.write('mine', 'another\n')
  await savepoint.snapshot()
  await savepoint.gc()
  await savepoint.purge('token')
  await savepoint.gc()
  const { restore } = await savepoint.redo()
  expect([restore!.leftAlone, state('f1', 'token', 'mine')]).toEqual([[], ['A\n', undefined, 'another\n']])
})

describe('a run inside of another one', () => {
  const cli = cliCommand.map(word => `'${word}'`).join(' ')
  beforeEach(async () => {
    await run('echo earlier > f2')
    await run(`echo A > f1; ${cli} run -q -- sh -c 'echo inner > made'; rm keep`)
  })

  it('and was taken back while that went on stays back with it', async () => {
    const outer = run(`${cli} run -q -- sh -c 'rm f1'; touch ../begun; ${until('back')}; echo > other`)
    await reached('begun')
    const inner = savepoint.runs().find(({ command }) => command[2] === 'rm f1')
    await savepoint.rollback(inner!.id)
    say('back')
    await outer
    await savepoint.undo()
    await savepoint.undo()
    expect(state('f1', 'f2', 'keep', 'other')).toEqual(['f1\n', 'earlier\n', 'keep\n', undefined])
  })

  it('goes back with it: the next undo takes what was done before both', async () => {
    await savepoint.undo()
    expect(state('f1', 'f2', 'made', 'keep')).toEqual(['f1\n', 'earlier\n', undefined, 'keep\n'])
    const { restore } = await savepoint.undo()
    expect([restore!.leftAlone, state('f2')]).toEqual([[], ['f2\n']])
    await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
  })

  it('stays back when something new was done, and that is undone again', async () => {
    await savepoint.undo()
    await run('echo later > f1')
    await savepoint.undo()
    const { operation, restore } = await savepoint.undo()
    expect([operation.summary, restore!.leftAlone]).toEqual([expect.stringContaining('echo earlier'), []])
    expect(state('f1', 'f2', 'made')).toEqual(['f1\n', 'f2\n', undefined])
  })

  it('comes back with it, and can then be taken back alone', async () => {
    await savepoint.undo()
    await savepoint.undo()
    await savepoint.redo()
    await savepoint.redo()
    expect(state('f1', 'f2', 'made', 'keep')).toEqual(['A\n', 'earlier\n', 'inner\n', undefined])
    const inner = savepoint.runs().find(({ command }) => command[2] === 'echo inner > made')
    await savepoint.rollback(inner!.id)
    expect(state('f1', 'made')).toEqual(['A\n', undefined])
  })
})

describe('what was gone back to while the run went on', () => {
  const cli = cliCommand.map(word => `'${word}'`).join(' ')
  const next = async () => {
    await savepoint.undo()
    await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
    expect(state('f1', 'made')).toEqual(['f1\n', undefined])
    await savepoint.redo()
    expect(state('f1', 'made')).toEqual(['f1\n', 'm\n'])
  }

  it('by a process of it went back with the run: what it had done before that does not come again', async () => {
    await run(`echo A > f1; ${cli} rollback HEAD > ../out; echo m > made`)
    await next()
  })

  it('by somebody who took back the run so far: the same', async () => {
    const agent = run(`echo A > f1; touch ../begun; ${until('back')}; echo m > made`)
    await reached('begun')
    await savepoint.rollback(savepoint.runs()[0]!.id, { keepRunning: true })
    say('back')
    await agent
    await next()
  })

  it('is not what was taken back after its end, which can be undone', async () => {
    await run('echo A > f1; echo A > f2')
    const { id } = savepoint.runs()[0]!
    space.write('f1', 'edited\n')
    // Leaves that alone.
    await savepoint.undo()
    space.write('f1', 'A\n')
    await savepoint.rollback(id)
    expect(state('f1', 'f2')).toEqual(['f1\n', 'f2\n'])
    await savepoint.undo()
    expect(state('f1', 'f2')).toEqual(['A\n', 'f2\n'])
  })
})

it.each([
  ['by a third name', 'mv a t; mv b a; mv t b'],
  ['in a circle', 'mv a t; mv b a; mv c b; mv t c'],
])('directories that change places %s go back, and forth', async (_, script) => {
  for (const name of ['a', 'b', 'c']) {
    space.write(`${name}/x`, `${name}\n`)
    space.write(`${name}/${name}`, `${name}\n`)
  }
  const all = () => space.sh('grep -r . a b c | sort')
  const before = all()
  await run(script)
  const after = all()
  for (const verb of ['undo', 'redo', 'undo'] as const) {
    const { restore } = await savepoint[verb]()
    expect([restore!.leftAlone, all()]).toEqual([[], verb === 'undo' ? before : after])
  }
})
