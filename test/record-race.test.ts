/** Processes that change the same paths at the same time, recorded: the state before comes back to the byte, whoever was first. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { type Recorded, record } from './support/recorded.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

const program = (name: string) => fileURLToPath(new URL(`support/${name}`, import.meta.url))
/** How many to try by hand: SAVEPOINT_ROUNDS=100. */
const ROUNDS = Number(process.env.SAVEPOINT_ROUNDS ?? 1)

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

function expectBack({ directory }: Recorded, before: Map<string, string>): void {
  const after = imageOf(space.dir)
  const back = savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', directory])
  expect([back.status, back.stdout, back.stderr]).toEqual([0, expect.not.stringContaining('Left alone'), ''])
  expect(differences(before, imageOf(space.dir))).toEqual([])
  expect(savepoint(space, ['bundle', 'restore', '--in-place', '--yes', directory]).status).toBe(0)
  expect(differences(after, imageOf(space.dir))).toEqual([])
}

it.each(['all', 'changes'])('daemonised processes, of which %s is recorded', recorded => {
  for (let round = 1; round <= ROUNDS; round++) {
    const daemons = (seed: number, processes: number, steps: number) =>
      ['python3', program('daemons.py'), space.dir, seed, processes, steps].map(String)
    space.sh(daemons(2 * round, 0, 150).join(' '))
    const before = imageOf(space.dir)
    expectBack(record(space, daemons(2 * round + 1, 3, 300), { args: [`--record=${recorded}`] }), before)
  }
})

it('a file that comes to a path after somebody was about to empty what is there', () => {
  const FILES = 100
  for (let i = 0; i < FILES; i++) space.write(`file-${i}`)
  const before = imageOf(space.dir)
  const command = ['python3', program('racers.py'), space.dir, `${FILES}`]
  const recorded = record(space, command, { args: ['--record=changes'] })
  expect([recorded.result.status, recorded.manifest.incomplete_because]).toEqual([0, []])
  expectBack(recorded, before)
})

it.each([
  ['a file is brought to where it empties what is there', 'empty'],
  ['a file is brought to where it deletes what is there', 'delete'],
  ['a file comes that it puts in the place of another', 'replace'],
  ['a link on its way leads elsewhere while it makes a directory', 'make'],
  ['a link on its way leads elsewhere while it opens a file', 'open'],
  ['a link leads elsewhere, in one process that computes beside', 'make', 'threads'],
])('somebody calls in vain, and %s', (_, kind, ...how) => {
  const COUNT = 300
  const isLink = kind === 'make' || kind === 'open'
  for (let i = 0; i < COUNT; i++) space.write(isLink ? `directory-${i}/file` : `file-${i}`)
  if (isLink) symlinkSync('directory-0', join(space.dir, 'current'))
  const before = imageOf(space.dir)
  const command = ['python3', program('crossing.py'), space.dir, kind, `${COUNT}`, ...how]
  const recorded = record(space, command, { args: ['--record=changes'] })
  expect([recorded.result.status, recorded.manifest.incomplete_because]).toEqual([0, []])
  expectBack(recorded, before)
})

it('processes that are killed in the middle of a call have lost nothing', () => {
  const killed = `import os, signal, time
for _ in range(150):
    worker = os.fork()
    while worker == 0:
        try: os.unlink("missing")
        except OSError: pass
    time.sleep(0.002)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)`
  const recorded = record(space, ['python3', '-c', killed], { args: ['--record=changes'] })
  expect([recorded.result.status, recorded.manifest.lost_events]).toEqual([0, 0])
})
