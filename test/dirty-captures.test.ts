/**
 * Snapshots in a run look only at what it touched. Whatever it does, and however it does it: they hold what a look at
 * everything finds.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { quoteCommand } from '../src/model/shell-quote.ts'
import { cliCommand } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 3)
const mutator = fileURLToPath(new URL('support/mutator.py', import.meta.url))

let space: Workspace
let savepoint: Savepoint
let bin: string
beforeEach(async () => {
  space = new Workspace()
  bin = join(space.base, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'mark'), '#!/bin/sh\nexit 0\n')
  chmodSync(join(bin, 'mark'), 0o755)
  space.write('untouched/a', 'a\n')
  space.write('savepoint.yaml', 'snapshots:\n  triggers:\n    disable_idle: true\n    test_commands: [mark]\n')
  savepoint = await space.open({ env: { ...space.env, PATH: `${bin}:${process.env.PATH}` } })
})
afterEach(() => space.remove())

const marks = (): Snapshot[] => savepoint.snapshots().filter(({ type }) => type === 'test')

/** The snapshot that a run's `mark` number `count` led to. */
async function markOf(count: number): Promise<Snapshot> {
  await vi.waitUntil(() => marks().length >= count, { timeout: 60_000, interval: 5 })
  return marks().sort((a, b) => b.seq - a.seq)[0]!
}

/** What differs between a snapshot and what is there, by reading every byte. */
async function differences(snapshot: Snapshot): Promise<string> {
  const copy = join(space.base, `copy-${snapshot.id}`)
  await (await space.open()).rollback(snapshot.id, { to: copy })
  const list = "find . ! -path . -printf '%P %y %m %l\\n' | sort"
  return space.sh(
    `diff -r --no-dereference . '${copy}' || true
     (${list}) > ../live; (cd '${copy}' && ${list}) > ../captured; diff ../live ../captured || true`,
  )
}

async function mutate(seed: number, rounds: number, threads: number, isQuiet: boolean): Promise<void> {
  const command = ['python3', mutator, space.dir, space.base, String(seed), String(rounds), String(threads)]
  const run = savepoint.run({ command })
  for (let count = 1; count <= rounds; count++) {
    const snapshot = await Promise.race([
      markOf(count),
      run.then(({ exitCode }) => Promise.reject(new Error(`it ended with ${exitCode}: ${space.notices}`))),
    ])
    if (isQuiet || count === rounds) {
      expect({ seed, count, differences: await differences(snapshot) }).toEqual({ seed, count, differences: '' })
      if (isQuiet) expect(snapshot.unsettled).toBe(false)
    }
    writeFileSync(join(space.base, `go-${count}`), '')
  }
  expect((await run).exitCode).toBe(0)
  // Otherwise this proves nothing. A write to a file with several names needs a look at everything.
  if (seed % 3 !== 0) expect(marks().filter(({ runOnly }) => runOnly).length).toBeGreaterThan(0)
}

describe('a random program', () => {
  const seeds = Array.from({ length: RUNS }, (_, i) => 1 + i + Math.floor(Math.random() * 1e9))
  it.each(seeds)('each snapshot is what is there, seed %i', seed => mutate(seed, 6, 1, true), 120_000)
  it.each(seeds)(
    'nothing is forgotten when others go on meanwhile, seed %i',
    seed => mutate(seed, 5, 4, false),
    120_000,
  )
})

const unseen = `
import mmap, os, subprocess, sys, time

def mark(count):
    subprocess.run(["mark"])
    while not os.path.exists(os.path.join(sys.argv[1], f"go-{count}")):
        time.sleep(0.005)

held = open("held", "w")
with open("mapped", "wb+") as file:
    file.truncate(4096)
    mapped = mmap.mmap(file.fileno(), 4096)
mapped[0:1] = b"1"
plain = os.open("plain", os.O_RDONLY)
print("before", flush=True)
mark(1)
held.write("through a descriptor from before\\n")
held.flush()
mapped[1:2] = b"2"
os.fchmod(plain, 0o600)
print("after", flush=True)
mark(2)
`

it('T9 a held descriptor, a page that is dirty already, an inherited and a read-only descriptor: in the next snapshot', async () => {
  space.write('plain', 'p\n')
  const script = join(space.base, 'unseen.py')
  writeFileSync(script, unseen)
  const env = { ...space.env, PATH: `${bin}:${process.env.PATH}` }
  const command = quoteCommand([...cliCommand, 'run', '-q', '--', 'python3', script, space.base])
  const child = spawn('sh', ['-c', `exec ${command} > log`], { cwd: space.dir, env, stdio: 'ignore' })
  const ended = once(child, 'exit')
  for (const count of [1, 2]) {
    expect({ count, differences: await differences(await markOf(count)) }).toEqual({ count, differences: '' })
    writeFileSync(join(space.base, `go-${count}`), '')
  }
  expect(await ended).toEqual([0, null])
  expect([space.read('held'), space.read('log')]).toEqual(['through a descriptor from before\n', 'before\nafter\n'])
})

it('calls that lead nowhere leave it known what a run touches', async () => {
  space.write('plain', 'p\n')
  space.write('gone/x', 'x\n')
  const script = `
import os, subprocess
os.symlink("round", "round")
for path in ["plain/x", "plain/x/y", "round", "round/x", os.path.abspath("plain/x"), "x" * 300]:
    try: open(path, "w")
    except OSError: pass
open("new", "w").write("n")
subprocess.run(["rm", "-r", "gone"])`
  const savepoint = await space.open()
  expect(await savepoint.run({ command: ['python3', '-c', script] })).toMatchObject({ exitCode: 0 })
  const [guard] = savepoint.snapshots().filter(({ type }) => type === 'guard')
  expect(guard).toMatchObject({ runOnly: true })
  expect(savepoint.read(guard!.id, 'new').toString()).toBe('n')
})
