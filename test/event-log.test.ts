/** Whatever changes something is in the log of events, once; every face gives the same pages of it; what is purged is not in it. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Daemon, startDaemon } from '../src/api/daemon.ts'
import { type HttpServer, serveHttp } from '../src/api/http-server.ts'
import { eventPageJson } from '../src/api/json-events.ts'
import type { EventsOptions, LogEvent, Savepoint } from '../src/index.ts'
import { builtCommand, savepointJson } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

const noWatches = 'echo 0 > /proc/sys/user/max_inotify_instances'
const hasLimits = spawnSync('unshare', ['-Ur', 'sh', '-c', noWatches]).status === 0

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'a1\n')
  space.write('b', 'b1\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const all = (options: EventsOptions = {}) => savepoint.events({ limit: 1000, reverse: true, ...options }).events
const operations = () => all({ kind: ['operation'] }).map(({ action }) => action)
const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })

describe('every operation that changes something is one event', () => {
  /** What was done gives this, and nothing else. */
  async function gives(actions: string[], work: () => unknown): Promise<void> {
    const before = operations().length
    await work()
    expect(operations().slice(before)).toEqual(actions)
  }

  it('of files and history', async () => {
    await gives([], () => savepoint.snapshot({ label: 'first' }))
    await gives(['run'], () => run('echo a2 > a; rm b'))
    await gives(['undo'], () => savepoint.undo())
    await gives(['redo'], () => savepoint.redo())
    await gives(['rollback'], () => savepoint.rollback('first'))
    await gives([], () => savepoint.rollback('first'))
    await gives([], () => savepoint.rollback('first', { dryRun: true }))
    await gives(['undo'], () => savepoint.undo())
    await gives(['revert'], () => savepoint.revert('a', { from: 'first' }))
    await gives(['tag'], () => savepoint.tag('good', 'first'))
    await gives([], () => savepoint.tag('good', 'first'))
    await gives(['undo'], () => savepoint.undo())
    await gives(['redo'], () => savepoint.redo())
    await gives(['tag'], () => savepoint.deleteTag('good'))
    for (const label of ['x', 'y', 'z']) {
      space.write('a', label)
      await savepoint.snapshot({ label })
    }
    await gives(['compact'], () => savepoint.compact(['x', 'y']))
    await gives(['delete'], () => savepoint.delete(['y']))
    await gives(['prune'], () => savepoint.prune({ keep: 0 }))
    await gives(['gc'], () => savepoint.gc())
    await gives(['purge'], () => savepoint.purge('b'))
    const archive = join(space.base, 'z.tar')
    await savepoint.exportSnapshot('z', archive)
    await gives(['import'], () => savepoint.importArchive(archive))
  })

  it('HEAD alone moves, a step that finds all done, a repair, and what is trusted', async () => {
    const first = await savepoint.snapshot()
    await savepoint.snapshot()
    await gives(['rollback'], () => savepoint.rollback(first.id))
    expect(savepoint.head().id).toBe(first.id)
    await run('echo a2 > a')
    space.write('a', 'a1\n')
    await gives(['undo'], () => savepoint.undo())
    await gives(['run', 'trust'], async () => {
      await run("echo 'snapshots: {disabled: true}' > savepoint.yaml")
      await savepoint.trust({ dryRun: true })
      await savepoint.trust()
    })
    await gives([], () => savepoint.verify())
    const index = join(space.home, 'store', 'index.sqlite')
    savepoint.close()
    writeFileSync(index, readFileSync(index).fill(0, 4096))
    savepoint = await space.open({ repair: true })
    await gives(['repair'], () => savepoint.verify({ repair: true }))
  })

  it('a signal to a process of a run; and runs tell how they end', async () => {
    const ended = run('echo > ready; exec sleep 300')
    const sleeping = () => savepoint.processes().find(({ argv }) => argv[0] === 'sleep')
    await vi.waitFor(() => expect(sleeping()).toBeDefined(), { timeout: 60_000, interval: 20 })
    await gives(['kill'], () => savepoint.signalProcess(sleeping()!.pid))
    await ended
    const [started, over] = all({ kind: ['run'] })
    expect(started).toMatchObject({ kind: 'run', action: 'started', of: { exitCode: undefined, signal: undefined } })
    expect(over).toMatchObject({ kind: 'run', action: 'ended', run: started!.run, of: { signal: 'SIGTERM' } })
    const commands = all({ kind: ['command'] })
    expect(commands.map(({ action }) => action)).toEqual(['started', 'started', 'ended', 'ended'])
    expect(commands.at(-1)).toMatchObject({ execution: { argv: ['sleep', '300'], signal: 'SIGTERM' } })
    expect(commands[0]).toMatchObject({ execution: { endedAt: undefined } })
  })

  gated(canDropPrivilege, 'setpriv', 'also of an ordinary user', async () => {
    const { error } = await runAsUser(space, [
      ['snapshot', { label: 'first' }],
      ['run', { command: ['sh', '-c', 'rm b'] }],
      ['tag', 'good'],
      ['undo'],
      ['rollback', 'first'],
    ])
    expect(error).toBeUndefined()
    expect(operations()).toEqual(['run', 'tag', 'undo', 'rollback'])
  })
})

describe('every face gives the same pages', () => {
  let daemon: Daemon
  let server: HttpServer
  beforeEach(async () => {
    await run('echo a2 > a; rm b')
    savepoint.tag('good')
    await savepoint.undo()
    daemon = await startDaemon({ cwd: space.dir, home: space.home, env: space.env })
    server = await serveHttp({ host: '127.0.0.1', port: 0 }, daemon.service, 'token', '0')
  })
  afterEach(async () => {
    await server.close()
    await daemon.close()
  })

  const http = async (query: string) => {
    const response = await fetch(`${server.url}/v1/events?${query}`, { headers: { authorization: 'Bearer token' } })
    return (await response.json()) as { events: { kind: string }[]; next: string | null }
  }

  /** The daemon is in this process: it must not wait for the command line. */
  const cli = async (args: string[]): Promise<unknown> => {
    const [program, ...before] = builtCommand
    const { stdout } = await promisify(execFile)(program!, [...before, ...args, '--json'], {
      cwd: space.dir,
      env: space.env,
    })
    return JSON.parse(stdout)
  }

  it('library, command line, socket and HTTP', async () => {
    const options: EventsOptions = { kind: ['file', 'operation', 'command'], limit: 3 }
    const first = JSON.parse(JSON.stringify(eventPageJson(savepoint.events(options))))
    expect(first.events).toHaveLength(3)
    expect(await cli(['events', '--kind', 'file,operation', '--kind', 'command', '-n', '3'])).toEqual(first)
    const words = ['kind=file', 'kind=operation', 'kind=command']
    expect(await cli(['ctl', 'events', ...words, 'limit=3'])).toEqual(first)
    expect(await http(`${words.join('&')}&limit=3`)).toEqual(first)
    const cursor = first.next as string
    const second = JSON.parse(JSON.stringify(eventPageJson(savepoint.events({ ...options, cursor }))))
    expect(await cli(['ctl', 'events', ...words, 'limit=3', `cursor=${cursor}`])).toEqual(second)
    expect(await http(`${words.join('&')}&limit=3&cursor=${cursor}`)).toEqual(second)
    expect(await http('kind=run&since=1h')).toMatchObject({ events: [{ action: 'ended' }, { action: 'started' }] })
    expect(await http('kind=runs')).toMatchObject({
      status: 400,
      hint: 'Did you mean "run"?',
    })
    expect(await http('cursor=deadbeef-1-1')).toMatchObject({ status: 400, code: 'usage' })
  })

  async function follows(before: string[]): Promise<void> {
    const command = [...before, ...builtCommand, 'events', '--follow', '--json', '-n', '2']
    const child = spawn(command[0]!, command.slice(1), {
      cwd: space.dir,
      env: space.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines: string[] = []
    createInterface(child.stdout).on('line', line => void lines.push(line))
    const until = (count: number) =>
      vi.waitFor(() => expect(lines).toHaveLength(count), { timeout: 60_000, interval: 20 })
    await until(2)
    savepoint.tag('better')
    await until(3)
    child.kill()
    await once(child, 'close')
    const events = JSON.parse(JSON.stringify(eventPageJson(savepoint.events({ limit: 3 })).events.toReversed()))
    const told = lines.map(line => JSON.parse(line))
    expect(told.map(({ cursor }) => cursor)).toEqual(events.map(({ cursor }: { cursor: string }) => cursor))
    expect(told.at(-1)).toEqual(events.at(-1))
  }

  it('what is followed is what is listed', () => follows([]))

  gated(hasLimits, 'unshare -Ur', 'the same when the system has no watches left for us', () =>
    follows(['unshare', '-Ur', 'sh', '-c', `${noWatches}; exec "$@"`, 'sh']),
  )
})

it('what is purged is not in the log, by whichever kind it is asked for', async () => {
  await savepoint.snapshot()
  await run('echo TOPSECRET > secret.txt; mv secret.txt other.txt; mv other.txt secret.txt')
  await savepoint.revert('a', { from: 'HEAD' })
  const shown = () => JSON.stringify(eventPageJson(savepoint.events({ kind: ['all'], limit: 1000 })))
  expect(shown()).toContain('secret.txt')
  await savepoint.purge('secret.txt')
  const left = all({ kind: ['all'] }).filter(event => JSON.stringify(event).includes('secret.txt'))
  // That it was purged is said.
  expect(left.map(({ kind, action }) => `${kind} ${action}`)).toEqual(['operation purge'])
  expect(shown()).not.toContain('TOPSECRET')
})

describe('turns of an agent', () => {
  const turn = (number: number) => ({ agent: 'claude', session: 's1', number, event: 'PostToolUse', tool: 'Edit' })

  it('are kept with the snapshot, and thinned out although they belong to no run', async () => {
    for (let number = 1; number <= 45; number++) {
      space.write('a', `${number}\n`)
      await savepoint.snapshot({ type: 'turn', label: `turn ${number}`, turn: turn(number) })
    }
    const left = savepoint.snapshots()
    expect(left.map(each => each.turn!.number)).toEqual([1, 2, ...Array.from({ length: 32 }, (_, i) => 14 + i)])
    expect(left.at(-1)!.turn).toEqual(turn(45))
    const removed = all({ kind: ['snapshot'] }).filter((event: LogEvent) => event.action === 'removed')
    expect(removed).toHaveLength(11)
    expect(removed[0]).toMatchObject({ rule: 'thinning: beyond the newest 30', snapshot: { turn: { number: 3 } } })
    // Nothing that could be undone, but visible there, too.
    const ruled = { kind: 'retention', state: 'fixed', rule: 'thinning: beyond the newest 30' }
    expect(savepoint.operations()).toMatchObject(removed.map(() => ruled))
    expect((await savepoint.status()).lastOperation).toBeUndefined()
    expect(savepointJson(space, ['show'])).toMatchObject({ turn: { ...turn(45) } })
    const log = savepointJson(space, ['log']) as { turn: unknown }[]
    expect(log[0]!.turn).toEqual(turn(45))
    // What would find the snapshots again, should the database be lost, knows of it.
    const plain = readFileSync(join(space.home, 'timelines', savepoint.timeline, 'snapshots.log'), 'utf8')
    expect(plain).toContain(JSON.stringify(JSON.stringify(turn(45))).slice(1, -1))
  })
})
