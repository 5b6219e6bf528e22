/** What clients of `savepoint mcp` may do to it, and what it does beside live runs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { startRun, useRuns } from './support/background-run.ts'
import { asOrdinaryUser, builtCommand, giveToUser, savepoint } from './support/built-cli.ts'
import { killedRun } from './support/killed-run.ts'
import { closeMcpClients, connectMcp } from './support/mcp-client.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
let engine: Savepoint
useRuns(made => {
  space = made
})
beforeEach(async () => {
  engine = await space.open()
  await engine.snapshot({ label: 'first' })
})
afterEach(closeMcpClients)

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const toolCall = (id: number, name: string, input: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: input },
})
const lines = (...messages: object[]) => messages.map(message => `${JSON.stringify(message)}\n`).join('')

/** The server alone, with whatever is written to it. */
function startServer() {
  const child = spawn(builtCommand[0]!, [...builtCommand.slice(1), 'mcp'], { cwd: space.dir, env: space.env })
  let [stdout, stderr] = ['', '']
  const waiting: (() => void)[] = []
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
    for (const look of waiting) look()
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  child.stdin.on('error', () => {})
  const ended = once(child, 'close').then(([status, signal]) => ({ status, signal, stdout, stderr }))
  // biome-ignore lint/suspicious/noExplicitAny: messages of the protocol
  const answers = (): any[] =>
    stdout
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const answer = (id: number): Promise<any> =>
    new Promise(resolve => {
      const look = () => {
        // Only whole lines: the last may be on its way.
        if (!stdout.endsWith('\n')) return
        const found = answers().find(each => each.id === id)
        if (found) resolve(found)
      }
      waiting.push(look)
      look()
    })
  return { child, ended, answer, answers }
}

interface Coverage {
  url: string
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[]
}

/** Whether the innermost part of the code around one of these words was carried out. */
function wasReached(word: string, { url, functions }: Coverage): boolean {
  const code = readFileSync(fileURLToPath(url), 'utf8')
  const ranges = functions.flatMap(each => each.ranges)
  return [...code.matchAll(new RegExp(word, 'g'))].some(({ index }) => {
    const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= index && index < endOffset)
    const lengths = around.map(({ startOffset, endOffset }) => endOffset - startOffset)
    return around[lengths.indexOf(Math.min(...lengths))]!.count > 0
  })
}

it('is loaded by nobody else: ordinary commands start without the protocol and without zod', () => {
  const loaded = (...args: string[]) => {
    const coverage = `${space.base}/coverage-${args[0]}`
    savepoint(space, args, { env: { ...space.env, NODE_V8_COVERAGE: coverage } })
    const files = readdirSync(coverage).flatMap(
      file => JSON.parse(readFileSync(`${coverage}/${file}`, 'utf8')).result as Coverage[],
    )
    const ours = files.filter(({ url }) => url.includes('/dist/'))
    const has = (word: string) => ours.some(file => wasReached(word, file))
    return { zod: has('"ZodObject"'), sdk: has('"notifications/initialized"') }
  }
  expect(loaded('head')).toEqual({ zod: false, sdk: false })
  expect(loaded('mcp')).toEqual({ zod: true, sdk: true })
})

describe('pages', () => {
  const MAX = 2_000

  it('hold what they may, and are the whole together', async () => {
    for (let i = 0; i < 300; i++) space.write(`dir/${'long-'.repeat(8)}${i}`, 'x\n')
    space.write('text', Array.from({ length: 2_000 }, (_, i) => `line ${i}\n`).join(''))
    const mcp = await connectMcp(space)
    const changes = await mcp.pages('snapshots_changes', 'changes', { max_length: MAX })
    expect(new Set(changes.items.map(item => (item as { path: string }).path)).size).toBe(301)
    const diff = await mcp.pages('snapshots_diff', 'lines', { path: 'text', max_length: 5_000 })
    expect(diff.items.filter(line => /^\+line \d+$/.test(line as string))).toHaveLength(2_000)
    await mcp.call('snapshots_create', { name: 'many' })
    const shown = await mcp.pages('snapshots_show', 'changes', { checkpoint: 'many', max_length: MAX })
    expect(shown.items).toEqual(changes.items)
    const planned = await mcp.pages('snapshots_rollback', 'changes', {
      checkpoint: 'first',
      dry_run: true,
      max_length: MAX,
      paths: ['dir'],
    })
    expect(planned.items.length).toBeGreaterThan(0)
    expect(Math.max(...changes.lengths, ...shown.lengths, ...planned.lengths)).toBeLessThan(MAX * 1.3)
    const beyond = await mcp.call('snapshots_changes', { start_index: 99_999 })
    expect(beyond.data).toMatchObject({ changes: [], next_start_index: null })
  })

  it('count what stands beside their elements, however many names there are', async () => {
    for (let i = 0; i < 60; i++) engine.tag(`a-name-that-takes-some-room-${i}`, 'first')
    for (let i = 0; i < 5; i++) await engine.snapshot()
    const mcp = await connectMcp(space)
    const input = { max_length: MAX, format: 'json' }
    const { text, data } = await mcp.call('snapshots_log', input)
    expect(text.length).toBeLessThanOrEqual(MAX)
    expect(data.tags.length).toBeGreaterThan(0)
    expect(data.tags.length + data.more_tags).toBe(60)
    const trace = await engine.run({ command: ['sh', '-c', 'for i in 1 2 3 4 5 6; do /bin/true; done'] })
    const commands = await mcp.call('commands_list', { ...input, run: trace.run!.id, max_length: 1000 })
    expect(commands.text.length).toBeLessThanOrEqual(1000)
  })

  it('cut what is said before the elements, when a command is long', async () => {
    await engine.run({ command: ['sh', '-c', `echo 2 > a.txt # ${'x'.repeat(5_000)}`] })
    const mcp = await connectMcp(space)
    const { text, data } = await mcp.call('snapshots_undo', { max_length: MAX, dry_run: true })
    expect(text.length).toBeLessThanOrEqual(MAX)
    expect(text).toMatch(/^Would undo: run_[\s\S]*xxx… \[\d+ characters more\]\ndelete a\.txt\n/)
    expect(data.undone.summary.length).toBeGreaterThan(1_000)
  })

  it('do not make a model do a thing twice', async () => {
    for (let i = 0; i < 100; i++) space.write(`f${i}`, 'x\n')
    await engine.snapshot()
    const mcp = await connectMcp(space)
    const input = { checkpoint: 'first', max_length: 1_000 }
    const planned = await mcp.call('snapshots_rollback', { ...input, dry_run: true })
    expect(planned.data.next_start_index).toBeGreaterThan(1)
    const again = await mcp.call('snapshots_rollback', { ...input, start_index: planned.data.next_start_index })
    expect(again).toMatchObject({ isError: true, text: expect.stringContaining('start_index goes with dry_run') })
    expect(space.read('f1')).toBe('x\n')
    const done = await mcp.call('snapshots_rollback', input)
    expect(done.data).toMatchObject({ total: 100, next_start_index: null, files: { deleted: 100 } })
    expect(done.text).toMatch(/\[\d+ more are done, and not listed\]\nTo take it back: snapshots_undo/)
  })

  it('cut a line that is longer than all of it, and say so', async () => {
    space.write('one-line', 'y'.repeat(100_000))
    const mcp = await connectMcp(space)
    const { text, data } = await mcp.call('snapshots_diff', { path: 'one-line', max_length: MAX, start_index: 6 })
    expect(text.length).toBeLessThan(MAX * 1.3)
    expect(text).toMatch(/\+y+… \[\d+ characters more\]/)
    expect(data.lines[0].length).toBeLessThan(MAX)
    const end = await mcp.pages('snapshots_diff', 'lines', { path: 'one-line', max_length: MAX })
    expect(end.items.at(-1)).toContain('No newline at end of file')
  })
})

describe('connections', () => {
  it('several at once see each other’s work', async () => {
    const [one, two] = await Promise.all([connectMcp(space), connectMcp(space, { protocol: 'auto' })])
    expect(two!.client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    expect(one!.client.getNegotiatedProtocolVersion()).toBe('2025-11-25')
    const made = await Promise.all(
      ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'].map((name, i) => (i % 2 ? two! : one!).call('snapshots_create', { name })),
    )
    expect(made.map(({ text }) => text).filter(text => !text.startsWith('Took'))).toEqual([])
    const lists = await Promise.all([one!.call('snapshots_list'), two!.call('snapshots_list')])
    for (const { data } of lists) expect(data.total).toBe(7)
    // Each tool works in the newer revision of the protocol, too, and so do resources.
    expect((await two!.call('snapshots_rollback', { checkpoint: 'first', dry_run: true })).isError).toBe(false)
    expect((await two!.call('snapshots_rollback', { checkpoint: 'nobody' })).isError).toBe(true)
    expect((await two!.client.listResources()).resources).toHaveLength(8)
  })

  it('end when the client closes its side, with everything answered that was asked', async () => {
    const server = startServer()
    server.child.stdin.end(lines(initialize, toolCall(1, 'snapshots_create', { name: 'piped' })).trimEnd())
    const { status, stderr } = await server.ended
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(server.answers().map(({ id }) => id)).toEqual([0, 1])
    expect(engine.find('piped').label).toBe('piped')
  })

  it('end at once when nothing was asked', async () => {
    const server = startServer()
    server.child.stdin.end()
    expect(await server.ended).toEqual({ status: 0, signal: null, stdout: '', stderr: '' })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('end with %s', async signal => {
    const server = startServer()
    server.child.stdin.write(lines(initialize))
    await server.answer(0)
    server.child.kill(signal)
    expect(await server.ended).toMatchObject({ status: 0, signal: null })
  })

  it('end when nobody reads their answers any more', async () => {
    const server = startServer()
    server.child.stdin.write(lines(initialize))
    await server.answer(0)
    server.child.stdout.destroy()
    server.child.stdin.write(lines(toolCall(1, 'snapshots_list'), toolCall(2, 'snapshots_list')))
    expect((await server.ended).status).toBe(0)
  })

  it('survive garbage', async () => {
    const server = startServer()
    server.child.stdin.write('garbage\n\n{"half":\n[]\n{"jsonrpc":"1.0"}\n"text"\n\x00\xff\n')
    server.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'no/such' })}\n`)
    server.child.stdin.write(lines(initialize))
    await server.answer(0)
    server.child.stdin.write('more garbage\n')
    server.child.stdin.write(lines(toolCall(1, 'snapshots_list'), toolCall(2, 'snapshots_list', { nonsense: 1 })))
    expect((await server.answer(1)).result.structuredContent.total).toBe(1)
    expect((await server.answer(2)).result.isError).toBe(true)
    server.child.stdin.end()
    const { status, stderr } = await server.ended
    expect(status).toBe(0)
    const said = 'savepoint: MCP: a line on standard input is no message of the protocol'
    expect([...new Set(stderr.trim().split('\n'))]).toEqual([said])
  })

  it('a request that is cancelled is not answered, and the next one is', async () => {
    const server = startServer()
    server.child.stdin.write(lines(initialize))
    await server.answer(0)
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    server.child.stdin.write(
      lines(toolCall(1, 'snapshots_create', { name: 'c' }), cancelled, toolCall(2, 'snapshots_list')),
    )
    expect((await server.answer(2)).result.isError).toBeUndefined()
    server.child.stdin.end()
    expect((await server.ended).status).toBe(0)
    expect(server.answers().map(({ id }) => id)).not.toContain(1)
    expect((await engine.verify()).problems).toEqual([])
  })
})

describe('where it is started', () => {
  it('paths start at the target, and only the subdirectory is rolled back', async () => {
    space.write('sub/s', 's1')
    await engine.snapshot({ label: 'both' })
    space.sh('echo s2 > sub/s; echo a2 > a')
    const mcp = await connectMcp(space, { cwd: space.at('sub') })
    expect((await mcp.call('snapshots_diff', { path: 'sub/s' })).text).toContain('+s2')
    const { text } = await mcp.call('snapshots_rollback', { checkpoint: 'both' })
    expect(text).toContain('Only sub/, where this server was started')
    expect([space.read('sub/s'), space.read('a')]).toEqual(['s1', 'a2\n'])
    await mcp.call('snapshots_rollback', { checkpoint: 'both', paths: ['.'] })
    expect(space.read('a')).toBe('a1')
  })

  it('an operation that reached further is undone as a whole only when that is asked for', async () => {
    space.write('sub/s', 's1')
    await engine.snapshot()
    space.sh('echo a2 > a')
    await engine.rollback('first', { paths: ['a'] })
    const mcp = await connectMcp(space, { cwd: space.at('sub') })
    const refused = await mcp.call('snapshots_undo')
    expect(refused.text).toMatch(/^NOTHING WAS EXECUTED: [\s\S]*snapshots_undo \{all: true\} takes the whole operation/)
    expect((await mcp.call('snapshots_undo', { all: true })).text).toMatch(/^Undone: /)
    expect(space.read('a')).toBe('a2\n')
  })

  it('what the engine says beside its answer names tools', async () => {
    expect(killedRun(space, 'cd /; rm -r "$OLDPWD"')).toBe('SIGKILL')
    const mcp = await connectMcp(space, { cwd: space.base, args: ['-t', space.dir] })
    const { data } = await mcp.call('snapshots_undo', { dry_run: true })
    expect(data.notices).toContainEqual(
      expect.stringMatching(/directory was deleted .*; snapshots_undo makes it again/),
    )
  })

  it('or anywhere, with --target', async () => {
    const mcp = await connectMcp(space, { cwd: '/', args: ['-t', space.dir] })
    expect((await mcp.call('coverage', { path: 'a' })).data.covered).toBe(true)
    expect((await mcp.call('snapshots_history', { path: space.at('a') })).data.path).toBe('a')
  })

  it('works for an ordinary user', async () => {
    giveToUser(space)
    const before = [
      'setpriv',
      '--reuid',
      String(asOrdinaryUser.owner),
      '--regid',
      String(asOrdinaryUser.owner),
      '--clear-groups',
      '--',
    ]
    const mcp = await connectMcp(space, { before: asOrdinaryUser.before.length > 0 ? asOrdinaryUser.before : before })
    expect((await mcp.call('snapshots_create', { name: 'mine' })).isError).toBe(false)
    expect((await mcp.call('snapshots_list')).data.total).toBe(2)
  })
})

describe('beside a live run', () => {
  it('what it changes is carried out by the run, and looking does not wait', async () => {
    const run = await startRun(space, 'echo a2 > a; read x; echo done')
    const mcp = await connectMcp(space)
    expect((await mcp.call('snapshots_changes')).text).toContain('M a')
    const taken = await mcp.call('snapshots_create', { name: 'while it runs' })
    expect(taken.data.snapshot).toMatchObject({ label: 'while it runs', head: true })
    expect((await mcp.call('commands_list')).text).toContain(`${run.id} (going on)`)
    expect((await mcp.call('snapshots_rollback', { checkpoint: 'first', dry_run: true })).data.would_stop).toEqual([
      run.id,
    ])
    await mcp.call('snapshots_revert', { path: 'a', checkpoint: 'first' })
    expect(space.read('a')).toBe('a1')
    run.say('go on')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('done') })
  })

  it('inside of it the run goes on, and what protects it is not deleted', async () => {
    const server = [...builtCommand, 'mcp'].map(word => `'${word}'`).join(' ')
    const requests = lines(
      initialize,
      toolCall(1, 'snapshots_delete', { checkpoint: 'first' }),
      toolCall(2, 'snapshots_rollback', { checkpoint: 'first' }),
    )
    space.write('requests', requests)
    await engine.snapshot({ label: 'with requests' })
    const run = await startRun(space, `echo a2 > a; cat requests | ${server} > ../answers; echo goes on; read x`)
    run.say('go on')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('goes on') })
    const answers = space
      .sh('cat ../answers')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const result = (id: number) => answers.find(each => each.id === id).result
    expect(result(1)).toMatchObject({ isError: true, _meta: { 'savepoint/error': { code: 'run.inside' } } })
    expect(result(1).content[0].text).toMatch(/^NOTHING WAS EXECUTED[\s\S]*\nNext: tell the user/)
    expect(result(2).isError).toBeUndefined()
    expect(space.read('a')).toBe('a1')
  })
})
