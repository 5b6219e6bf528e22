/** Commands beside a live run and a daemon: they see what the run has just done, and change history without harm to it. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { endRuns, startRun } from './support/background-run.ts'
import { asOrdinaryUser, giveToUser, savepoint, savepointAsUser, savepointJson } from './support/built-cli.ts'
import { Client, endDaemons, type Frame, isLast, startDaemon } from './support/daemon.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace('work', { SAVEPOINT_LOCK_WAIT_MS: '120000' })
  space.write('a', 'a1\n')
  space.write('secret', 's1\n')
})
afterEach(async () => {
  await endDaemons()
  await endRuns()
  space.remove()
})

it('what a live run did a moment ago is in trace, why and events, by every way to ask', async () => {
  const run = await startRun(space, 'READY; while read word; do echo "$word" >> a; /bin/echo done "$word"; done')
  const says = (name: string, args: string[]) => JSON.stringify(savepointJson(space, [name, ...args]))
  let output = ''
  run.child.stdout!.on('data', (chunk: string) => (output += chunk))
  const write = async (word: string) => {
    run.say(word)
    while (!output.includes(`done ${word}`)) await new Promise(resolve => run.child.stdout!.once('data', resolve))
  }
  await write('one')
  const library = await space.open({ upToDate: true })
  expect(library.trace().executions.map(({ argv }) => argv.join(' '))).toContain('/bin/echo done one')
  await write('two')
  expect(says('trace', [])).toContain('"two"')
  await write('three')
  expect(savepointJson(space, ['why', 'a']).causes[0]).toMatchObject({ event: { run: run.id, path: 'a' } })
  await write('four')
  expect(says('ctl', ['trace'])).toContain('"four"')
  await write('five')
  expect(says('ctl', ['why', 'path=a'])).toContain(run.id)
  expect(says('events', [])).toContain('"path":"a"')
  run.child.stdin!.end()
  expect(await run.ended).toMatchObject({ status: 0 })
})

it('history is changed beside a live run and a daemon: it is told to who listens, and the run ends as it should', async () => {
  for (const label of ['s1', 's2', 's3', 's4']) {
    space.write('a', `${label}\n`)
    space.write('secret', `${label}\n`)
    savepoint(space, ['snapshot', '-q', '-m', label])
  }
  const daemon = await startDaemon(space)
  const client = new Client(daemon.socket)
  const told: Frame[] = []
  client.onFrame = frame => void (frame.event?.kind === 'operation' && told.push(frame.event.operation.kind))
  client.send({ op: 'subscribe' })
  await client.next()
  const run = await startRun(space, 'echo run > a; echo new > b; rm secret; READY; read x; echo end >> a')
  for (const args of [['tag', 'good', 's2'], ['delete', 's1'], ['compact', 's3', 's4'], ['prune'], ['gc']]) {
    const { status, stderr } = savepoint(space, args)
    expect({ args, status, stderr }).toEqual({ args, status: 0, stderr: '' })
  }
  expect(savepoint(space, ['purge', 'secret', '--yes']).stdout).toContain('Purged secret')
  expect(savepointJson(space, ['snapshot', '-m', 'mid'])).toMatchObject({ label: 'mid', head: true })
  run.say('')
  const { status, stderr } = await run.ended
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('To undo: savepoint undo\n') })
  while (!told.includes('run')) await client.next()
  expect(told).toEqual(['tag', 'delete', 'compact', 'gc', 'purge', 'run'])
  expect(savepoint(space, ['verify']).status).toBe(0)
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect([space.read('a'), space.read('b')]).toEqual(['s4\n', undefined])
  client.send({ cancel: true })
  await client.next(isLast)
  client.end()
})

it('whatever changes history beside a live run says how to undo that, and not the run', async () => {
  for (const text of ['one', 'two']) savepoint(space, ['run', '-q', '--', 'sh', '-c', `echo ${text} > a`])
  for (const label of ['s1', 's2', 's3']) savepoint(space, ['snapshot', '-q', '-m', label])
  const archive = join(space.base, 'then.tar')
  expect(savepoint(space, ['export', 's1', archive]).status).toBe(0)
  const run = await startRun(space, 'echo run > a; READY; read x')
  const says = [
    ['prune', '--keep', '0'],
    ['delete', 's1'],
    ['compact', 's2', 's3'],
    ['tag', 'x', 's3'],
    ['import', archive],
  ]
  for (const args of says) {
    const { stdout } = savepoint(space, args)
    expect({ args, hint: /^To undo: .*/m.exec(stdout)?.[0] }).toEqual({
      args,
      hint: 'To undo: savepoint undo --keep-running',
    })
  }
  const { id } = savepointJson(space, ['snapshot', '-m', 'going'])
  savepoint(space, ['snapshot', '-m', 'on top'])
  expect(savepoint(space, ['delete', 'going']).status).toBe(0)
  for (const args of [
    ['delete', id],
    ['tag', 'y', id],
  ])
    expect(savepoint(space, args).stderr).toContain('`savepoint undo --keep-running` brings it back')
  run.say('')
  expect(await run.ended).toMatchObject({ status: 0 })
})

it('the state before a run that goes on never goes, by whatever rule or command: after a kill -9 it is what undo needs', async () => {
  space.write('savepoint.yaml', 'snapshots: { retention: { delete_initial: true } }\n')
  const run = await startRun(space, 'echo run > a; READY; read x; echo more > b')
  const { before } = savepointJson(space, ['runs'])[0]
  savepoint(space, ['snapshot', '-m', 'mid'])
  for (const args of [['prune'], ['prune', '--keep', '0'], ['prune', run.id, '--keep', '0']])
    expect({
      args,
      gone: savepointJson(space, args).decisions.filter((each: { keep: boolean }) => !each.keep),
    }).toEqual({
      ...{ args, gone: [] },
    })
  for (const args of [
    ['delete', before],
    ['compact', before, 'mid'],
  ]) {
    const { status, stderr } = savepoint(space, args)
    const words = `Cannot ${args[0]} ${before}: it is the state before ${run.id}, which goes on`
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(words) })
  }
  run.child.kill('SIGKILL')
  run.child.stdin!.end('\n')
  await run.ended
  // Of one that was killed it is still the only way back.
  expect(savepointJson(space, ['prune', '--keep', '0']).operation).toBeNull()
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 0 })
  expect([space.read('a'), space.read('b')]).toEqual(['a1\n', undefined])
})

it('an ordinary user gets the same from a run of theirs', async () => {
  giveToUser(space)
  const { spawn, before } = asOrdinaryUser
  const run = await startRun(space, 'echo two > a; READY; read x', { spawn, before })
  const { causes } = JSON.parse(savepointAsUser(space, ['why', 'a', '--json']).stdout)
  expect(causes[0]).toMatchObject({ event: { run: run.id } })
  run.say('')
  expect(await run.ended).toMatchObject({ status: 0 })
})
