/**
 * `npm run bench:live [-- --files 10000,80000,500000]`: what a live run feels like in trees of several sizes: how soon the command
 * begins in a tree that was never seen, how long a snapshot of ten changed files takes, how long a destructive command is
 * held, and what our own process takes while nothing happens. Writes bench/live.md.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './measure.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const savepoint = here('../savepoint')
const { values } = parseArgs({ options: { files: { type: 'string', default: '10000,80000' } } })
const sizes = values.files.split(',').map(Number)
const ROUNDS = 15
const FIRST_ROUNDS = 5
const IDLE_S = 30
const SETTLE_S = 60
const TICKS_PER_S = 100

const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
const bin = join(base, 'bin')
const env = { ...process.env, SAVEPOINT_HOME: join(base, 'home'), PATH: `${bin}:${process.env.PATH}` }
const config = 'snapshots:\n  triggers:\n    disable_idle: true\n    test_commands: [mark]\n'

function makeTree(files: number): string {
  const tree = join(base, `tree-${files}`)
  for (let i = 0; i < files; i++) {
    const directory = join(tree, `d${i % 97}`, `e${Math.floor(i / 970)}`)
    if (i % 970 < 97) mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `f${i}`), `file ${i}\n`.repeat(60))
  }
  // Otherwise everything that is made durable waits for all of it.
  execFileSync('sync')
  return tree
}

const json = (tree: string, ...args: string[]) =>
  JSON.parse(execFileSync(savepoint, [...args, '--json'], { cwd: tree, env, maxBuffer: 1e9, encoding: 'utf8' }))

/** Milliseconds from the call to the command's first instruction, in a tree that was never seen. */
function firstInstruction(tree: string): number {
  const file = join(base, 'first')
  const times = Array.from({ length: FIRST_ROUNDS }, () => {
    rmSync(env.SAVEPOINT_HOME, { recursive: true, force: true })
    execFileSync('sync')
    const start = Date.now()
    execFileSync(savepoint, ['run', '-q', '--', 'sh', '-c', `date +%s%N > '${file}'`], {
      cwd: tree,
      env,
      stdio: 'ignore',
    })
    return Number(readFileSync(file, 'utf8')) / 1e6 - start
  })
  return median(times)
}

/** Milliseconds from the end of a command that leads to a snapshot until that is there. */
function snapshotOfTen(tree: string): number {
  const script = `i=0; while [ $i -lt ${ROUNDS} ]; do
    for j in 1 2 3 4 5 6 7 8 9 10; do echo $i > d$j/e0/live; done; mark; sleep 0.4; i=$((i+1)); done; rm -f d*/e0/live`
  execFileSync(savepoint, ['run', '-q', '--', 'sh', '-c', script], { cwd: tree, env, stdio: 'ignore' })
  const made: number[] = json(tree, 'snapshots')
    .filter((each: { type: string }) => each.type === 'test')
    .map((each: { created_at: string }) => Date.parse(each.created_at))
  const ended: number[] = json(tree, 'trace')
    .commands.filter(
      (each: { argv: string[] }) => each.argv.some(word => word.endsWith('mark')) && each.argv.length < 3,
    )
    .map((each: { time: string; duration_ms: number }) => Date.parse(each.time) + each.duration_ms)
  // Each belongs to the last command before it.
  return median(made.map(at => at - Math.max(...ended.filter(end => end <= at))))
}

/** Milliseconds that `rm -r` of a small new directory takes longer than without us. */
function guardHold(tree: string): number {
  const out = join(base, 'held')
  const script = `i=0; while [ $i -lt 6 ]; do mkdir g; echo $i > g/f; s=$(date +%s%N); rm -r g; e=$(date +%s%N)
    echo $((e - s)) >> '${out}'; sleep 2.1; i=$((i+1)); done`
  const time = (command: string[]) => {
    rmSync(out, { force: true })
    const [program, ...args] = [...command, 'sh', '-c', script]
    execFileSync(program!, args, { cwd: tree, env, stdio: 'ignore' })
    return median(readFileSync(out, 'utf8').trim().split('\n').map(Number)) / 1e6
  }
  const without = time([])
  return time([savepoint, 'run', '-q', '--']) - without
}

/** Share of one processor, and resident memory, of our process while the command sleeps. */
/** In a tree that was never seen, when its capture is over and what it took has gone back to the system. */
async function idle(tree: string): Promise<{ cpu: number; bytes: number }> {
  rmSync(env.SAVEPOINT_HOME, { recursive: true, force: true })
  const child = spawn(savepoint, ['run', '-q', '--', 'sleep', '1000'], { cwd: tree, env, stdio: 'ignore' })
  const ticks = () => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return Number(fields[11]) + Number(fields[12])
  }
  const isCaptured = () => {
    const log = spawnSync(savepoint, ['log', '--json'], { cwd: tree, env, encoding: 'utf8' })
    return log.status === 0 && JSON.parse(log.stdout).length > 0
  }
  while (!isCaptured()) await pause(1000)
  await pause(SETTLE_S * 1000)
  const before = ticks()
  await pause(IDLE_S * 1000)
  const cpu = (ticks() - before) / TICKS_PER_S / IDLE_S
  const rss = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  child.kill('SIGTERM')
  await new Promise(resolve => child.on('exit', resolve))
  return { cpu, bytes: Number(rss?.[1] ?? 0) * 1024 }
}

try {
  mkdirSync(bin)
  writeFileSync(join(bin, 'mark'), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  const rows: string[] = []
  for (const files of sizes) {
    const tree = makeTree(files)
    const first = firstInstruction(tree)
    writeFileSync(join(tree, 'savepoint.yaml'), config)
    const ten = snapshotOfTen(tree)
    const hold = guardHold(tree)
    const rest = await idle(tree)
    rows.push(
      `| ${files} | ${first.toFixed(0)} ms | ${ten.toFixed(0)} ms | ${hold.toFixed(0)} ms | ${(rest.cpu * 100).toFixed(2)} % | ${Math.round(rest.bytes / 1e6)} MB |`,
    )
    console.error(`bench: ${rows.at(-1)}`)
    rmSync(tree, { recursive: true })
    rmSync(join(base, 'home'), { recursive: true })
  }
  const text = [
    '# What a live run feels like',
    '',
    `Written by \`npm run bench:live\` (\`bench/live.ts\`). Medians of ${ROUNDS} snapshots, 6 guards and ${FIRST_ROUNDS} first captures; the first capture is of a tree without a \`savepoint.yaml\` (reading one takes about 20 ms more). The idle process is measured once, in a tree that was never seen, for ${IDLE_S} s that begin ${SETTLE_S} s after its capture. The time of a snapshot counts from the end of the command that led to it, with the 10 ms or so in which frames are collected; the ten files lie in ten directories of ten files each, so that the size of the tree is all that differs.`,
    '',
    '| files | first instruction, never seen (≤ 150 ms) | snapshot of ten files (≤ 30 ms) | guard hold (≤ 60 ms) | idle CPU (< 1 %) | idle memory (< 150 MB) |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
  writeFileSync(here('live.md'), text)
  console.log(text)
} finally {
  rmSync(base, { recursive: true, force: true })
}
