/**
 * Commands whose time we compare with and without us: what they need, and how they are timed. Used by bench/record.ts and
 * bench/tracing.ts, so that both speak of the same work.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median } from './measure.ts'

/** `before` is done untraced and not timed. Both run in a directory beside `source`, which `makeRepository` makes. */
export interface Workload {
  name: string
  before: string
  script: string
}

export const MAKE: Workload = {
  name: 'make -j2 of 60 C files',
  before: 'rm -f c60/*.o c60/p',
  script: 'cd c60; make -s -j2',
}
/** git reads a file again that is as old as its index, by seconds: without `touch` each `git status` would, or not, by chance. */
const clone = (source: string) =>
  `git clone -q ${source} c; cd c; touch -d '2 seconds' .git/index; for i in $(seq 20); do git status >/dev/null; done`
/** Its objects are 640 small files, which are linked: hardly anything but changes of names. */
export const GIT: Workload = {
  name: 'git clone and 20 × git status',
  // Not removed until the end: ext4 takes long to make files where many were deleted in the last seconds.
  before: 'mkdir -p ../old; if [ -e c ]; then mv c "../old/$(date +%s%N)"; fi',
  script: clone('../source'),
}
/** The repository that this is in, as from a server. */
export const GIT_SERVED: Workload = {
  ...GIT,
  name: 'the same of this project',
  script: clone(`--no-local '${fileURLToPath(new URL('..', import.meta.url))}'`),
}
export const SPAWN: Workload = {
  name: '2,000 short processes',
  before: '',
  script: 'i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done',
}
export const NPM_FLAGS = '--ignore-scripts --no-audit --no-fund --loglevel=error'

/** `source` below `base`, a repository of 600 files with one commit, for `GIT`. */
export function makeRepository(base: string, env: NodeJS.ProcessEnv): void {
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
}

/** The directory `c60` of `MAKE`. */
export function makeProgram(work: string): void {
  const directory = join(work, 'c60')
  mkdirSync(directory, { recursive: true })
  for (let i = 0; i < 60; i++) {
    const text = `#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f${i}(int a) { char b[99]; snprintf(b, 99, "%d", a); return (int)strlen(b); }\n`
    writeFileSync(join(directory, `f${i}.c`), text)
  }
  writeFileSync(join(directory, 'main.c'), 'int main(void) { return 0; }\n')
  const rules = 'O = $(patsubst %.c,%.o,$(wildcard *.c))\np: $(O)\n\tcc -o p $(O)\n%.o: %.c\n\tcc -O1 -c -o $@ $<\n'
  writeFileSync(join(directory, 'Makefile'), rules)
}

/** Times each way `runs` times, in turn: the machine is not the same from minute to minute. */
export function timeInTurn<Way>(ways: Way[], runs: number, time: (way: Way) => number): number[][] {
  const samples = ways.map(() => [] as number[])
  for (let run = 0; run < runs; run++) for (const [i, way] of ways.entries()) samples[i]!.push(time(way))
  return samples
}

/** The median of the ratios to the first way, each to the sample beside it. */
export function ratioToFirst(samples: number[][], way: number): number {
  return median(samples[way]!.map((seconds, run) => seconds / samples[0]![run]!))
}
