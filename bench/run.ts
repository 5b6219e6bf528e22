/**
 * `npm run bench [-- --files 80000 --runs 3 --half-million --no-peers --no-tracing --no-live --no-backends --dir DIR]`: makes a
 * tree in a temporary directory, times us and the peers on it, prints the results and writes them to bench/results.md. Then what
 * tracing costs, what a live run feels like and, as root, what filesystems keep by themselves, on trees of the same size: each is
 * a bench of its own (CONTRIBUTING.md).
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { renderResults } from './report.ts'
import { type Bench, runHalfMillion, runRound, runShortCommands } from './rounds.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Beside which a live run in a large tree must not be slower. */
const SMALL = 10_000
const HALF_MILLION = 500_000

const { values: options } = parseArgs({
  allowNegative: true,
  options: {
    files: { type: 'string', default: '80000' },
    runs: { type: 'string', default: '3' },
    dir: { type: 'string', default: tmpdir() },
    'half-million': { type: 'boolean', default: false },
    peers: { type: 'boolean', default: true },
    tracing: { type: 'boolean', default: true },
    live: { type: 'boolean', default: true },
    backends: { type: 'boolean', default: true },
    output: { type: 'string', default: here('results.md') },
  },
})
const files = Number(options.files)
const rounds = Number(options.runs)
if (!(files >= 1000 && rounds >= 1)) {
  console.error(
    'usage: npm run bench [-- --files N (from 1000) --runs N --half-million --no-peers --no-tracing --no-live --no-backends --dir DIR]',
  )
  process.exit(2)
}

const directory = mkdtempSync(join(options.dir, 'savepoint-bench-'))
const bench: Bench = {
  tree: join(directory, 'tree'),
  scratch: join(directory, 'scratch'),
  peers: options.peers,
  times: new Map(),
  bytes: new Map(),
  say: text => console.error(`bench: ${text}`),
}
const cleanUp = () => rmSync(directory, { recursive: true, force: true })
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    cleanUp()
    process.exit(130)
  })
}

try {
  // Asked before the minutes of making a tree: are the peers there?
  if (options.peers)
    execFileSync('bash', [here('peers.sh'), '.', directory, 'sizes'], { stdio: ['ignore', 'ignore', 'inherit'] })
  bench.say(`making a tree of ${files} files`)
  const made = execFileSync(process.execPath, [here('make-tree.mjs'), bench.tree, '--files', String(files)], {
    encoding: 'utf8',
  })
  // Reads everything once; tar itself would not read for /dev/null.
  execFileSync('sh', ['-c', 'tar -C "$1" -cf - . | cat >/dev/null', 'sh', bench.tree])
  for (let round = 1; round <= rounds; round++) {
    bench.say(`round ${round} of ${rounds}`)
    await runRound(bench)
  }
  bench.say('short commands')
  await runShortCommands(bench)
  if (options['half-million']) {
    bench.say('half a million files')
    await runHalfMillion(bench)
  }
  const text = renderResults({
    files,
    bytes: Number(/(\d+) MB/.exec(made)![1]) * 1e6,
    rounds,
    filesystem: execFileSync('df', ['--output=fstype', directory], { encoding: 'utf8' }).split('\n')[1]!.trim(),
    times: bench.times,
    bytesUsed: bench.bytes,
  })
  writeFileSync(options.output, text)
  console.log(text)
  cleanUp()
  const sizes = [...new Set([SMALL, files, ...(options['half-million'] ? [HALF_MILLION] : [])])]
  if (options.tracing) measureBeside('tracing')
  if (options.live) measureBeside('live', '--files', sizes.join())
  if (options.backends && process.geteuid?.() !== 0)
    bench.say('backends are not measured: that needs root (npm run bench:backends)')
  else if (options.backends) measureBeside('backends', '--files', String(files))
} catch (error) {
  console.error(`bench: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  cleanUp()
}

/** In a process of its own, which cleans up by itself. */
function measureBeside(name: string, ...args: string[]): void {
  bench.say(name)
  execFileSync(process.execPath, [...process.execArgv, here(`${name}.ts`), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}
