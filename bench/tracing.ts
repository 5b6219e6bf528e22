/**
 * `npm run bench:tracing [-- --runs 7 --only git]`: what tracing costs a command. Each workload runs untraced, under `savepoint run` and under
 * strace, in turn; it says itself how long it took, so that snapshots before and after are not in it. Writes bench/tracing.md.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './measure.ts'
import {
  GIT,
  GIT_SERVED,
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
  options: { runs: { type: 'string', default: '7' }, only: { type: 'string', default: '' } },
})
const runs = Number(options.runs)

const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
const work = join(base, 'work')
const took = join(base, 'took')
const env = { ...process.env, SAVEPOINT_HOME: join(base, 'home'), GIT_CONFIG_GLOBAL: '/dev/null' }

/** The limits are those that we set ourselves. */
const workloads: (Workload & { limit: number })[] = [
  { ...SPAWN, limit: 1.25 },
  { ...GIT, limit: 1.1 },
  { ...GIT_SERVED, limit: 1.1 },
  { ...MAKE, limit: 1.15 },
  {
    // What a configure script does; each removal may be held for a snapshot.
    name: '100 × cc and rm -rf conftest*',
    limit: 1.15,
    before: 'mkdir -p configure',
    script: `cd configure; i=0; while [ $i -lt 100 ]; do
      echo "int main(void) { return $i; }" > conftest.c; cc -o conftest conftest.c; rm -rf conftest*; i=$((i+1)); done`,
  },
  {
    name: 'npm ci of the dependencies of this project',
    limit: 1.1,
    before: '',
    script: `cd npm; npm ci --offline ${NPM_FLAGS}`,
  },
].filter(({ name }) => name.includes(options.only))
const ways: [name: string, command: string[]][] = [
  ['untraced', []],
  ['savepoint', [savepoint, 'run', '-q', '--']],
  ['strace', ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=process']],
]

function prepare(): void {
  makeProgram(work)
  makeRepository(base, env)
  // The dependencies of this project, from npm's own cache. Our own lockfile has no addresses, which `npm ci` wants.
  mkdirSync(join(work, 'npm'))
  copyFileSync(here('../package.json'), join(work, 'npm', 'package.json'))
  writeFileSync(join(work, '.gitignore'), 'node_modules/\n')
  const install = `npm install --prefer-offline ${NPM_FLAGS}`
  execFileSync('sh', ['-c', install], { cwd: join(work, 'npm'), env, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Seconds, by the workload's own clock. */
function time(command: string[], { before, script }: Workload): number {
  execFileSync('sh', ['-c', before], { cwd: work, stdio: 'ignore' })
  const timed = `s=$(date +%s%N); ${script}\ne=$(date +%s%N); echo $((e - s)) > '${took}'`
  const [program, ...args] = [...command, 'sh', '-c', timed]
  execFileSync(program!, args, { cwd: work, env, stdio: 'ignore' })
  return Number(readFileSync(took, 'utf8')) / 1e9
}

try {
  prepare()
  const rows = workloads.map(workload => {
    const { name, limit } = workload
    const samples = timeInTurn(ways, runs, ([, command]) => time(command, workload))
    const ratio = (way: number) => ratioToFirst(samples, way)
    console.error(`bench: ${name}: ${ratio(1).toFixed(2)} × (strace ${ratio(2).toFixed(2)} ×)`)
    const verdict = ratio(1) <= limit ? 'reached' : '**not reached**'
    return `| ${name} | ${median(samples[0]!).toFixed(2)} s | ${ratio(1).toFixed(2)} × | ${limit} × | ${verdict} | ${ratio(2).toFixed(2)} × |`
  })
  const text = [
    '# What tracing costs',
    '',
    `Written by \`npm run bench:tracing\` (\`bench/tracing.ts\`). Medians of ${runs} pairs of runs in turn; the time is the command's own, without the snapshots before and after it; those on the way are on.`,
    '',
    '| workload | untraced | savepoint run | limit |  | strace -f -e trace=process |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    'Times of snapshots on the way, of guards, and of the start: bench/live.md.',
    '',
  ].join('\n')
  if (options.only === '') writeFileSync(here('tracing.md'), text)
  console.log(text)
} finally {
  rmSync(base, { recursive: true, force: true })
}
