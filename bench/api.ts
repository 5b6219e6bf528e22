/**
 * `npm run bench:api`: how fast a daemon answers on its socket, alone and while it takes snapshots for somebody else, and how
 * much it answers over HTTP while snapshots are taken. Writes bench/api.md.
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
import { bareServer, CLIENTS, type Load, mix, underLoad } from './http-load.ts'
import { median } from './measure.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const SNAPSHOTS = 1000
const FILES = 5000
const ROUNDS = 500
const SLOW_ROUNDS = 15
const LOAD_SECONDS = 10
/** Changed before each of the snapshots that are taken under load. */
const CHANGED_FILES = 200
const TOKEN = 'a token for the bench'

const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
const env = { ...process.env, SAVEPOINT_HOME: join(base, 'home'), SAVEPOINT_HTTP_TOKEN: TOKEN }

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

/** One snapshot after the other, each of files that have changed. */
async function whileCapturing<T>(work: () => Promise<T>): Promise<T> {
  let isOver = false
  const capturing = (async () => {
    while (!isOver) {
      for (let i = 0; i < CHANGED_FILES; i++)
        writeFileSync(join(tree, `d${i % 50}`, `f${i}`), `${performance.now()} ${i}\n`.repeat(60))
      await other.ask({ op: 'snapshot' })
      snapshots++
    }
  })()
  const result = await work()
  isOver = true
  await capturing
  return result
}

const headMedian = async () => median(await client.times(ROUNDS, { op: 'head' }))

let snapshots = 0
const tree = await makeHistory()
const daemon = spawn(here('../savepoint'), ['daemon', '--json', '--http', '0'], {
  cwd: tree,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = (await once(createInterface(daemon.stdout), 'line')) as [string]
const { socket, http } = JSON.parse(line) as { socket: string; http: string }
const client = new Client(socket)
const other = new Client(socket)
const rows: [what: string, goal: string, ms: number][] = []
await client.times(20, { op: 'head' })
rows.push(['`head`', '< 2 ms', await headMedian()])
rows.push([`\`log\` of ${SNAPSHOTS} snapshots`, '< 50 ms', median(await client.times(SLOW_ROUNDS, { op: 'log' }))])
await client.ask({ op: 'status' })
rows.push([`\`status\` of ${FILES} files`, '', median(await client.times(SLOW_ROUNDS, { op: 'status' }))])
rows.push(['`exec` of `true`', '', median(await client.times(SLOW_ROUNDS, { op: 'exec', cmd: ['true'] }))])
rows.push(['`head` while snapshots are taken', '', await whileCapturing(headMedian)])
const loads: [server: string, load: Load][] = []
loads.push(['Savepoint', await underLoad(http, TOKEN, LOAD_SECONDS)])
snapshots = 0
loads.push(['Savepoint, while snapshots are taken', await whileCapturing(() => underLoad(http, TOKEN, LOAD_SECONDS))])
const captured = snapshots
const bare = await bareServer(http, TOKEN)
loads.push([
  '`node:http` with the same answers, while snapshots are taken',
  await whileCapturing(() => underLoad(bare.url, TOKEN, LOAD_SECONDS)),
])
bare.close()
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
  '## Over HTTP',
  '',
  `${CLIENTS} clients that keep their connections and ask again as soon as they are answered, for ${LOAD_SECONDS} s; of a thousand requests ${mix.map(([path, share]) => `${share} \`${path}\``).join(', ')}. ` +
    `Meanwhile ${FILES} files, ${CHANGED_FILES} of them changed each time, were captured again and again (${captured} snapshots). Goal: 1,000 requests/s, none failing.`,
  '',
  '| server | requests/s | median | 99 of 100 within | failed |',
  '| --- | --- | --- | --- | --- |',
  ...loads.map(
    ([server, { perSecond, medianMs, p99Ms, failed }]) =>
      `| ${server} | ${perSecond.toFixed(0)} | ${medianMs.toFixed(1)} ms | ${p99Ms.toFixed(0)} ms | ${failed} |`,
  ),
  '',
  `Of what plain \`node:http\` answers it answers ${((100 * loads[1]![1].perSecond) / loads[2]![1].perSecond).toFixed(0)} %.`,
  '',
].join('\n')
writeFileSync(here('api.md'), text)
process.stdout.write(text)
