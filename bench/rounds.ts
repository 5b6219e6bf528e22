/** What is measured, and in which order: us and the peers step by step on the same tree, so that only ratios matter. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from '../src/index.ts'
import { firstAnswer, type Measured, measure } from './measure.ts'

const CHANGED_FILES = 10
const LOG_SNAPSHOTS = 1000
const SHORT_COMMAND_RUNS = 20

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const launcher = here('../savepoint')

/** Name of a measurement → its values, one per round. */
export type Samples = Map<string, number[]>

export interface Bench {
  tree: string
  /** On the filesystem of the tree; emptied before each round. */
  scratch: string
  peers: boolean
  /** Seconds. */
  times: Samples
  /** Bytes: stores as `us`, `restic`…, and peaks of memory as `peak-…`. */
  bytes: Samples
  say(text: string): void
}

const add = (samples: Samples, name: string, value: number) => {
  samples.set(name, [...(samples.get(name) ?? []), value])
}

const ours = (bench: Bench, args: string[], cwd = bench.tree): Promise<Measured> =>
  measure(launcher, args, { cwd, env: envOf(bench) })
const envOf = (bench: Bench) => ({ ...process.env, SAVEPOINT_HOME: join(bench.scratch, 'home') })

const mcpHello = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
}

/** What an earlier step left in memory must not be written out at the expense of the next one. */
const settle = () => execFileSync('sync')

async function timeUs(bench: Bench, name: string, args: string[]): Promise<Measured> {
  settle()
  const measured = await ours(bench, args)
  add(bench.times, name, measured.seconds)
  bench.say(`${name} ${measured.seconds.toFixed(2)} s`)
  return measured
}

async function timePeers(bench: Bench, steps: string[]): Promise<void> {
  if (!bench.peers) return
  for (const step of steps) {
    settle()
    const { stdout } = await measure('bash', [here('peers.sh'), bench.tree, bench.scratch, step])
    for (const [name, value] of pairs(stdout)) {
      add(step === 'sizes' ? bench.bytes : bench.times, name, value)
      if (step !== 'sizes') bench.say(`${name} ${value.toFixed(2)} s`)
    }
  }
}

const pairs = (text: string) =>
  text
    .split('\n')
    .filter(line => line !== '')
    .map((line): [string, number] => [line.split(' ')[0]!, Number(line.split(' ')[1])])

/** One round: everything from an empty store. */
export async function runRound(bench: Bench): Promise<void> {
  rmSync(bench.scratch, { recursive: true, force: true })
  mkdirSync(bench.scratch, { recursive: true })

  await timePeers(bench, ['walk', 'tar-first'])
  const first = await timeUs(bench, 'us-first', ['snapshot', '--json'])
  add(bench.bytes, 'peak-first', first.peakBytes)
  add(bench.bytes, 'us', diskUsage(join(bench.scratch, 'home')))
  await timePeers(bench, ['git-first', 'restic-first', 'borg-first', 'rsync-first', 'sizes'])

  await timePeers(bench, ['walk'])
  await timeUs(bench, 'us-noop', ['snapshot', '--json'])
  await timePeers(bench, ['git-noop', 'restic-noop', 'borg-noop', 'rsync-noop'])

  changeFiles(bench.tree)
  const ten = await timeUs(bench, 'us-ten', ['snapshot', '--json'])
  await timePeers(bench, ['git-ten', 'restic-ten', 'borg-ten'])

  const { id } = JSON.parse(ten.stdout) as { id: string }
  const removed = join(bench.tree, 'node_modules')
  const before = countEntries(removed)
  if (bench.peers) await timePeers(bench, ['cp-prepare'])
  const restores = [
    async () =>
      add(bench.bytes, 'peak-restore', (await timeUs(bench, 'us-restore', ['rollback', id, '--json'])).peakBytes),
    () => timePeers(bench, ['git-restore']),
    () => timePeers(bench, ['restic-restore']),
    () => timePeers(bench, ['cp-restore']),
  ]
  for (const restore of bench.peers ? restores : restores.slice(0, 1)) {
    rmSync(removed, { recursive: true })
    await restore()
    const after = countEntries(removed)
    if (after !== before) throw new Error(`a restore of ${before} entries brought back ${after}`)
  }
}

/** Commands that people wait for without thinking: each one a fresh process. */
export async function runShortCommands(bench: Bench): Promise<void> {
  const directory = join(bench.scratch, 'small')
  mkdirSync(directory, { recursive: true })
  const savepoint = await open({ cwd: directory, home: join(bench.scratch, 'home'), create: true })
  try {
    for (let i = 0; i < LOG_SNAPSHOTS; i++) {
      writeFileSync(join(directory, `file-${i % 50}`), `content ${i}\n`)
      await savepoint.snapshot({ type: 'manual', label: `step ${i}` })
    }
  } finally {
    await savepoint.close()
  }
  for (const [name, args] of [
    ['us-version', ['--version']],
    ['us-log', ['log']],
  ] as const) {
    for (let i = 0; i < SHORT_COMMAND_RUNS; i++)
      add(bench.times, name, (await ours(bench, [...args], directory)).seconds)
  }
  for (let i = 0; i < SHORT_COMMAND_RUNS; i++) {
    const asked = { cwd: directory, env: envOf(bench) }
    add(bench.times, 'us-mcp', await firstAnswer(launcher, ['mcp'], `${JSON.stringify(mcpHello)}\n`, asked))
  }
}

/** The first capture of a tree of 500,000 small files: only its memory and time are of interest. */
export async function runHalfMillion(bench: Bench): Promise<void> {
  const tree = `${bench.scratch}-half-million`
  try {
    execFileSync(process.execPath, [here('make-tree.mjs'), tree, '--files', '500000', '--big', '0'])
    const { seconds, peakBytes } = await ours(bench, ['snapshot', '--json'], tree)
    add(bench.times, 'us-half-million', seconds)
    add(bench.bytes, 'peak-half-million', peakBytes)
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

function changeFiles(tree: string): void {
  const files = readdirSync(join(tree, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('/f1.ts'))
    .sort()
    .slice(0, CHANGED_FILES)
  if (files.length < CHANGED_FILES) throw new Error(`only ${files.length} files to change: give more --files`)
  for (const file of files) appendFileSync(join(tree, 'src', file), `// changed ${process.hrtime.bigint()}\n`)
}

const countEntries = (directory: string) => readdirSync(directory, { recursive: true }).length

const diskUsage = (path: string) =>
  Number(execFileSync('du', ['-s', '-k', path], { encoding: 'utf8' }).split('\t')[0]) * 1024
