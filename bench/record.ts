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
}

interface Workload {
  name: string
  /** Of strace's added time that recording may add. */
  share: number
  before: string
  script: string
}

const npmFlags = '--ignore-scripts --no-audit --no-fund --loglevel=error'
const ENTRIES = 68_000

const workloads: Workload[] = [
  { name: 'make -j2 of 60 C files', share: 1 / 3, before: 'rm -f c60/*.o c60/p', script: 'cd c60; make -s -j2' },
  {
    name: 'git clone and 20 × git status',
    share: 1 / 3,
    before: 'rm -rf c',
    script: 'git clone -q ../source c; cd c; for i in $(seq 20); do git status >/dev/null; done',
  },
  { name: 'find over 68,000 entries', share: 1 / 3, before: '', script: 'find ../many -size +1 >/dev/null' },
  {
    name: '2,000 short processes',
    share: 1,
    before: '',
    script: 'i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done',
  },
  {
    name: 'npm ci of some packages',
    share: 1,
    before: 'rm -rf npm/node_modules',
    script: `cd npm; npm ci --offline ${npmFlags}`,
  },
].filter(({ name }) => name.includes(options.only))

const ways: [name: string, command: string[]][] = [
  ['plain', []],
  ['record', [savepoint, 'record', '-q', '-o', bundle, '--']],
  ['changes', [savepoint, 'record', '-q', '--record=changes', '-o', bundle, '--']],
  ['strace', ['strace', '-f', '--seccomp-bpf', '-qq', '-o', join(base, 'strace'), '-e', 'trace=%file']],
]

function prepare(): void {
  mkdirSync(join(work, 'c60'), { recursive: true })
  mkdirSync(env.HOME)
  const source = join(base, 'source')
  mkdirSync(source)
  for (let i = 0; i < 600; i++) {
    mkdirSync(join(source, `d${i % 40}`), { recursive: true })
    writeFileSync(join(source, `d${i % 40}`, `f${i}.txt`), `line ${i}\n`.repeat(200))
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: source, env, stdio: 'ignore' })
  git('init', '-q')
  git('add', '-A')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-qm', 'all')
  for (let i = 0; i < 60; i++) {
    const text = `#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f${i}(int a) { char b[99]; snprintf(b, 99, "%d", a); return (int)strlen(b); }\n`
    writeFileSync(join(work, 'c60', `f${i}.c`), text)
  }
  writeFileSync(join(work, 'c60', 'main.c'), 'int main(void) { return 0; }\n')
  writeFileSync(
    join(work, 'c60', 'Makefile'),
    'O = $(patsubst %.c,%.o,$(wildcard *.c))\np: $(O)\n\tcc -o p $(O)\n%.o: %.c\n\tcc -O1 -c -o $@ $<\n',
  )
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
  execFileSync('sh', ['-c', `npm install ${npmFlags}`], {
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
    const samples = ways.map(() => [] as number[])
    let bytes = 0
    for (let run = 0; run < runs; run++) {
      // In turn: the machine is not the same from minute to minute.
      for (const [i, [way, command]] of ways.entries()) {
        samples[i]!.push(time(command, workload))
        if (way === 'record') bytes = sizeOf(join(bundle, 'blobs.parquet')) + sizeOf(join(bundle, 'manifest.json'))
      }
    }
    // Each against the plain one beside it.
    const ratio = (i: number) => median(samples[i]!.map((seconds, run) => seconds / samples[0]![run]!))
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
