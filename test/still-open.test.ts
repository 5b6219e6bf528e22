/** Files go back under processes that go on and hold them open for writing: what they write from then on is lost, and that is said. */
import { expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

interface StillOpen {
  path: string
  processes: { pid: number; name: string }[]
}
const namesOf = (found: StillOpen[]) => found.map(({ path, processes }) => [path, processes.map(({ name }) => name)])

it.each(['auto', 'ptrace', 'none'])('--keep-running names what is open for writing (tracer %s)', async tracer => {
  space.write('log', 'line0\n')
  savepoint(space, ['snapshot', '-m', 'good'])
  const script = `echo changed > a; exec 4<a 5>>log; mkdir -p new/deep; exec 6>new/deep/file; echo run >&5
    READY; read x; echo lost >&5; echo lost >&6`
  const run = await startRun(space, script, { args: ['--tracer', tracer] })
  const { status, stdout } = savepoint(space, ['rollback', 'good', '--keep-running'])
  run.say('on')
  await run.ended
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(
      /^log is open for writing in sh \(\d+\): what it writes from here on goes to the old file, which nobody can see; restart it\nnew\/deep\/file is open for writing in sh /m,
    ),
  })
  expect(stdout).not.toContain('a is open')
  expect([space.read('log'), space.read('new/deep/file')]).toEqual(['line0\n', undefined])
})

it('so does a rollback that the run asks for itself, in JSON; with what is mapped', async () => {
  space.write('mapped', 'x'.repeat(4096))
  savepoint(space, ['snapshot', '-m', 'good'])
  const script = `import mmap, os, subprocess, sys
file = open('mapped', 'r+b')
memory = mmap.mmap(file.fileno(), 4096)
file.close()
memory[0:1] = b'y'
open('gone', 'w').write('')
held = open('gone', 'w')
os.unlink('gone')
subprocess.run(sys.argv[1:])`
  const asked = [...builtCommand, 'rollback', 'good', '--json']
  const { stdout } = savepoint(space, ['run', '-q', '--', 'python3', '-c', script, ...asked])
  const { still_open } = JSON.parse(stdout) as { still_open: StillOpen[] }
  // What it removed itself was out of sight before.
  expect(namesOf(still_open)).toEqual([['mapped', [expect.stringMatching(/^python3/)]]])
})

it('a process that has outlived its run is named, too', async () => {
  const script = `sleep 300 >log 2>&1 & echo $! > pid`
  savepoint(space, ['run', '-q', '--', 'sh', '-c', script])
  const pid = Number(space.read('pid'))
  try {
    const { restore } = savepointJson(space, ['undo'])
    expect(restore.still_open).toEqual([{ path: 'log', processes: [{ pid, name: 'sleep' }] }])
  } finally {
    process.kill(pid)
  }
})

it('nothing is said of a run that was stopped', async () => {
  savepoint(space, ['snapshot', '-m', 'good'])
  const run = await startRun(space, 'exec 5>>a; echo more >&5; READY; read x')
  expect(savepointJson(space, ['rollback', 'good']).still_open).toEqual([])
  await run.ended
})

it('why does not say that what was taken back meanwhile was without effect', async () => {
  savepoint(space, ['snapshot', '-m', 'good'])
  const run = await startRun(space, 'exec 5>>a; echo more >&5; READY; read x')
  savepoint(space, ['rollback', 'good', '--keep-running'])
  run.say('on')
  await run.ended
  const { causes } = savepointJson(space, ['why', 'a'])
  expect(causes.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['changed'])
})
