/** Turns the measurements into bench/results.md: the machine, a table of seconds and ratios, and each target's verdict. */
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { median } from './measure.ts'
import type { Samples } from './rounds.ts'

export interface Results {
  files: number
  bytes: number
  rounds: number
  filesystem: string
  times: Samples
  bytesUsed: Samples
}

const PEERS: [label: string, name: string][] = [
  ['find walk', 'walk'],
  ['tar, zstd -1 -T2', 'tar'],
  ['shadow git', 'git'],
  ['restic', 'restic'],
  ['borg', 'borg'],
  ['rsync --link-dest', 'rsync'],
  ['cp -a', 'cp'],
]
const SITUATIONS: [label: string, name: string][] = [
  ['first capture', 'first'],
  ['nothing changed', 'noop'],
  ['ten files changed', 'ten'],
  ['node_modules back', 'restore'],
]
const MB = 1e6

export function renderResults(results: Results): string {
  return `${[
    '# Benchmark results',
    `Written by \`npm run bench\` (\`bench/run.ts\`). Medians of ${plural(results.rounds, 'round')}; page cache warm; every step a fresh process; us and the peers in turn on the same tree.`,
    machine(results),
    '## Seconds',
    '× is how many times as long as us it takes: above 1 we are faster.',
    timesTable(results.times),
    '## Bytes on disk after the first capture',
    sizesTable(results.bytesUsed),
    '## Targets',
    targetsTable(results),
  ].join('\n\n')}\n`
}

function machine({ files, bytes, filesystem }: Results): string {
  return [
    `- tree: ${files} files, ${(bytes / MB).toFixed(0)} MB`,
    `- ${plural(cpus().length, 'core')} (${cpus()[0]?.model.trim() || 'unknown'}), ${(totalmem() / 1e9).toFixed(0)} GB of memory`,
    `- Linux ${/^\d+\.\d+/.exec(release())?.[0] ?? 'unknown'}, ${filesystem}, node ${process.versions.node}`,
    ...[
      ['git', '--version'],
      ['restic', 'version'],
      ['borg', '--version'],
    ].flatMap(([program, option]) => versionOf(program!, option!) ?? []),
  ].join('\n')
}

function versionOf(program: string, option: string): string | undefined {
  try {
    const text = execFileSync(program, [option], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return `- ${program} ${/\d+\.\d+(\.\d+)?/.exec(text)?.[0]}`
  } catch {
    return undefined
  }
}

function timesTable(times: Samples): string {
  const rows = PEERS.map(([label, peer]) => [label, ...SITUATIONS.map(([, situation]) => cell(times, peer, situation))])
  const us = ['**savepoint**', ...SITUATIONS.map(([, situation]) => seconds(middle(times, `us-${situation}`)))]
  return table(['', ...SITUATIONS.map(([label]) => label)], [us, ...rows])
}

/** The walk is one number: the least that any tool without a watcher must do when nothing changed. */
function cell(times: Samples, peer: string, situation: string): string {
  const value =
    peer === 'walk' ? (situation === 'noop' ? middle(times, 'walk') : undefined) : middle(times, `${peer}-${situation}`)
  const us = middle(times, `us-${situation}`)
  return value === undefined || us === undefined ? '' : `${seconds(value)} (${(value / us).toFixed(1)} ×)`
}

function sizesTable(bytes: Samples): string {
  const names = ['us', 'tar', 'git', 'restic', 'borg'].filter(name => bytes.has(name))
  return table(
    names.map(name => (name === 'us' ? '**savepoint**' : name)),
    [names.map(name => `${(middle(bytes, name)! / MB).toFixed(0)} MB`)],
  )
}

interface Target {
  what: string
  /** Undefined when it was not measured. */
  value: number | undefined
  limit: number | undefined
  unit: 's' | 'MB' | 'ms'
}

function targetsOf({ times, bytesUsed }: Results): Target[] {
  const time = (name: string) => middle(times, name)
  const size = (name: string) => middle(bytesUsed, name)
  const times_ = (factor: number, value: number | undefined) => (value === undefined ? undefined : factor * value)
  const first = time('us-first')
  const noop = time('us-noop')
  const restore = time('us-restore')
  const walk = time('walk')
  const start = time('us-version')
  const aim = walk === undefined || start === undefined ? undefined : 1.5 * walk + start
  return [
    { what: 'first capture: at most tar, zstd -1 -T2', value: first, limit: time('tar-first'), unit: 's' },
    ...['restic', 'borg', 'git'].map(
      (peer): Target => ({
        what: `first capture: 3 times faster than ${peer}`,
        value: first,
        limit: times_(1 / 3, time(`${peer}-first`)),
        unit: 's',
      }),
    ),
    { what: 'store: at most 1.1 × that of restic', value: size('us'), limit: times_(1.1, size('restic')), unit: 'MB' },
    { what: 'nothing changed: faster than shadow git', value: noop, limit: time('git-noop'), unit: 's' },
    { what: 'nothing changed: 1.5 × the walk plus process start (aim)', value: noop, limit: aim, unit: 's' },
    { what: 'ten files changed: faster than shadow git', value: time('us-ten'), limit: time('git-ten'), unit: 's' },
    { what: 'node_modules back: faster than git checkout -f', value: restore, limit: time('git-restore'), unit: 's' },
    { what: 'node_modules back: faster than restic restore', value: restore, limit: time('restic-restore'), unit: 's' },
    { what: 'node_modules back: as fast as cp -a (aim)', value: restore, limit: time('cp-restore'), unit: 's' },
    { what: '`savepoint --version` under 80 ms', value: start, limit: 0.08, unit: 'ms' },
    { what: '`savepoint log` on 1,000 snapshots under 150 ms', value: time('us-log'), limit: 0.15, unit: 'ms' },
    { what: '`savepoint mcp` from start to first answer under 250 ms', value: time('us-mcp'), limit: 0.25, unit: 'ms' },
    { what: 'peak memory of the first capture under 300 MB', value: size('peak-first'), limit: 300 * MB, unit: 'MB' },
    {
      what: 'peak memory of a capture of 500,000 files under 600 MB',
      value: size('peak-half-million'),
      limit: 600 * MB,
      unit: 'MB',
    },
  ]
}

function targetsTable(results: Results): string {
  const show = (value: number | undefined, unit: Target['unit']) =>
    value === undefined
      ? ''
      : unit === 'MB'
        ? `${(value / MB).toFixed(0)} MB`
        : unit === 'ms'
          ? `${(value * 1000).toFixed(0)} ms`
          : `${seconds(value)} s`
  return table(
    ['target', 'measured', 'limit', ''],
    targetsOf(results).map(({ what, value, limit, unit }) => [
      what,
      show(value, unit),
      show(limit, unit),
      value === undefined || limit === undefined ? 'not measured' : value <= limit ? 'reached' : '**not reached**',
    ]),
  )
}

const middle = (samples: Samples, name: string) => {
  const values = samples.get(name)
  return values === undefined ? undefined : median(values)
}
const seconds = (value: number | undefined) => (value === undefined ? '' : value.toFixed(2))
const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

function table(head: string[], rows: string[][]): string {
  const lines = [head, head.map(() => '---'), ...rows]
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
