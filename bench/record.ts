/**
 * `npm run bench:record [-- --runs 5]`: what recording costs a command, all of it: from the start of `savepoint record` until the bundle is
 * written, contents included. Each workload runs plain, recorded, recorded with `--record=changes`, and under strace, in turn. Writes
 * bench/record.md.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './measure.ts'
import {
  GIT,
  MAKE,
  makeProgram,
  makeRepository,
  NPM_FLAGS,
  ratioToFirst,
  SPAWN,
  timeInTurn,
  type Workload,
} from './workloads.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const savepoint = here('../savepoint')
const { values: options } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, only: { type: 'string', default: '' } },
})
const runs = Number(options.runs)

const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
const work = join(base, 'work')
const bundle = join(base, 'bundle')
const env = {
  ...process.env,
  HOME: join(base, 'user'),
  SAVEPOINT_HOME: join(base, 'home'),
  GIT_CONFIG_GLOBAL: '/dev/null',
  npm_config_cache: join(base, 'npm-cache'),
  // What `npm run` passes on of this project is not for the workloads: a node of 100 MB among its programs, which would be captured as
  // what npm reads, and a lockfile without addresses, with which `npm ci` would ask for more than `npm install` kept.
  PATH: process.env
    .PATH!.split(':')
    .filter(directory => !directory.includes('node_modules'))
    .join(':'),
  npm_config_omit_lockfile_registry_resolved: 'false',
}

const ENTRIES = 68_000

/** `share`: how much of the time that strace adds recording may add. */
const workloads: (Workload & { share: number })[] = [
  { ...MAKE, share: 1 / 3 },
  { ...GIT, share: 1 / 3 },
  { name: 'find over 68,000 entries', share: 1 / 3, before: '', script: 'find ../many -size +1 >/dev/null' },
  { ...SPAWN, share: 1 },
  {
    name: 'npm ci of some packages',
    share: 1,
    before: 'rm -rf npm/node_modules',
    script: `cd npm; npm ci --offline ${NPM_FLAGS}`,
  },
].filter(({ name }) => name.includes(options.only))

const ways: [name: string, command: string[]][] = [
  ['plain', []],
  ['record', [savepoint, 'record', '-q', '-o', bundle, '--']],
  ['changes', [savepoint, 'record', '-q', '--record=changes', '-o', bundle, '--']],
  ['strace', ['strace', '-f', '--seccomp-bpf', '-qq', '-o', join(base, 'strace'), '-e', 'trace=%file']],
]

function prepare(): void {
  mkdirSync(env.HOME)
  makeProgram(work)
  makeRepository(base, env)
  if ('find over'.includes(options.only) || options.only.includes('find')) {
    for (let i = 0; i < ENTRIES; i++) {
      if (i % 100 === 0) mkdirSync(join(base, 'many', `d${(i / 1000) | 0}`, `e${(i / 100) | 0}`), { recursive: true })
      writeFileSync(join(base, 'many', `d${(i / 1000) | 0}`, `e${(i / 100) | 0}`, `f${i}`), '')
    }
  }
  if (!'npm ci'.includes(options.only) && !options.only.includes('npm')) return
  const dependencies = { commander: '14.0.3', hono: '4.13.17', yaml: '2.9.1', zod: '4.6.7', 'fast-check': '4.10.2' }
  mkdirSync(join(work, 'npm'))
  writeFileSync(join(work, 'npm', 'package.json'), JSON.stringify({ name: 'x', version: '1.0.0', dependencies }))
  execFileSync('sh', ['-c', `npm install ${NPM_FLAGS}`], {
    cwd: join(work, 'npm'),
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Seconds of everything. */
function time(command: string[], { before, script }: Workload): number {
  rmSync(bundle, { recursive: true, force: true })
  execFileSync('sh', ['-c', before], { cwd: work, stdio: 'ignore' })
  const [program, ...args] = [...command, 'sh', '-c', script]
  const start = performance.now()
  const { status } = spawnSync(program!, args, { cwd: work, env, stdio: 'ignore' })
  if (status !== 0) throw new Error(`${[program, ...args].join(' ')} ended with ${status}`)
  return (performance.now() - start) / 1000
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

try {
  prepare()
  const rows = workloads.map(workload => {
    const { name, share } = workload
    let bytes = 0
    const samples = timeInTurn(ways, runs, ([way, command]) => {
      const seconds = time(command, workload)
      if (way === 'record') bytes = sizeOf(join(bundle, 'blobs.parquet')) + sizeOf(join(bundle, 'manifest.json'))
      return seconds
    })
    const ratio = (way: number) => ratioToFirst(samples, way)
    const limit = 1 + (ratio(3) - 1) * share
    const verdict = ratio(1) <= limit ? 'reached' : '**not reached**'
    const [plain, all, changes, strace] = [median(samples[0]!).toFixed(2), ...[1, 2, 3].map(i => ratio(i).toFixed(2))]
    console.error(`bench: ${name}: ${all} × (changes ${changes} ×, strace ${strace} ×), limit ${limit.toFixed(2)} ×`)
    return `| ${name} | ${plain} s | ${all} × | ${limit.toFixed(2)} × | ${verdict} | ${changes} × | ${strace} × | ${(bytes / 1e6).toFixed(1)} MB |`
  })
  const text = [
    '# What recording costs',
    '',
    `Written by \`npm run bench:record\` (\`bench/record.ts\`). Medians of ${runs} pairs of runs in turn; the time is all of it, from the start of \`savepoint record\` until the bundle is written. The limit: a third of the time that \`strace -f --seccomp-bpf -e trace=%file\` adds, or all of it for the last two.`,
    '',
    '| workload | plain | record | limit |  | --record=changes | strace | bundle |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
  if (options.only === '') writeFileSync(here('record.md'), text)
  console.log(text)
} finally {
  rmSync(base, { recursive: true, force: true })
}
