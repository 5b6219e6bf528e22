/**
 * `npm run bench:api`: how fast a daemon answers on its socket, alone and while it takes snapshots for somebody else. Writes
 * bench/api.md.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { open } from '../src/index.ts'
import { median } from './measure.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const SNAPSHOTS = 1000
const FILES = 5000
const ROUNDS = 500
const SLOW_ROUNDS = 15

const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
const env = { ...process.env, SAVEPOINT_HOME: join(base, 'home') }

async function makeHistory(): Promise<string> {
  const tree = join(base, 'tree')
  for (let i = 0; i < FILES; i++) {
    const directory = join(tree, `d${i % 50}`)
    if (i < 50) mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `f${i}`), `file ${i}\n`.repeat(60))
  }
  const savepoint = await open({ cwd: tree, env, create: true })
  for (let i = 0; i < SNAPSHOTS; i++) {
    writeFileSync(join(tree, 'd0', 'changed'), `${i}\n`)
    await savepoint.snapshot()
  }
  savepoint.close()
  return tree
}

/** Asks one question after the other. */
class Client {
  readonly socket: Socket
  private answer = Promise.withResolvers<void>()

  constructor(path: string) {
    this.socket = connect(path)
    createInterface(this.socket).on('line', line => {
      if (line.startsWith('{"error"')) this.answer.reject(new Error(line))
      if (line.startsWith('{"ok"')) this.answer.resolve()
    })
  }

  async ask(request: object): Promise<number> {
    this.answer = Promise.withResolvers()
    const start = performance.now()
    this.socket.write(`${JSON.stringify(request)}\n`)
    await this.answer.promise
    return performance.now() - start
  }

  async times(count: number, request: object): Promise<number[]> {
    const times: number[] = []
    for (let i = 0; i < count; i++) times.push(await this.ask(request))
    return times
  }
}

const tree = await makeHistory()
const daemon = spawn(here('../savepoint'), ['daemon', '--json'], {
  cwd: tree,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = (await once(createInterface(daemon.stdout), 'line')) as [string]
const { socket } = JSON.parse(line) as { socket: string }
const client = new Client(socket)
const other = new Client(socket)
const rows: [what: string, goal: string, ms: number][] = []
await client.times(20, { op: 'head' })
rows.push(['`head`', '< 2 ms', median(await client.times(ROUNDS, { op: 'head' }))])
rows.push([`\`log\` of ${SNAPSHOTS} snapshots`, '< 50 ms', median(await client.times(SLOW_ROUNDS, { op: 'log' }))])
await client.ask({ op: 'status' })
rows.push([`\`status\` of ${FILES} files`, '', median(await client.times(SLOW_ROUNDS, { op: 'status' }))])
rows.push(['`exec` of `true`', '', median(await client.times(SLOW_ROUNDS, { op: 'exec', cmd: ['true'] }))])
let isOver = false
const snapshots = (async () => {
  while (!isOver) await other.ask({ op: 'snapshot' })
})()
rows.push(['`head` while snapshots are taken', '', median(await client.times(ROUNDS, { op: 'head' }))])
isOver = true
await snapshots
for (const each of [client, other]) each.socket.destroy()
daemon.kill('SIGTERM')
await once(daemon, 'close')
rmSync(base, { recursive: true, force: true })

const text = [
  '# How fast a daemon answers',
  '',
  `Written by \`npm run bench:api\` (\`bench/api.ts\`). Medians of ${ROUNDS} round trips, of ${SLOW_ROUNDS} for what takes longer, on one connection.`,
  '',
  '| request | goal | median |',
  '| --- | --- | --- |',
  ...rows.map(([what, goal, ms]) => `| ${what} | ${goal} | ${ms.toFixed(2)} ms |`),
  '',
].join('\n')
writeFileSync(here('api.md'), text)
process.stdout.write(text)
