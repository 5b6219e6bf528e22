/** T9: what is stored through memory after a capture, which moves no timestamp, is in the next one, whatever the tracer. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { endRuns, startRun } from './support/background-run.ts'
import { savepoint } from './support/built-cli.ts'
import { MappedFile } from './support/mapped-file.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  // In memory: what is written to a disk meanwhile gets a timestamp with the next store.
  if (existsSync('/dev/shm')) vi.stubEnv('TMPDIR', '/dev/shm')
  space = new Workspace()
  vi.unstubAllEnvs()
  space.write('f', 'x'.repeat(4096))
  space.write('savepoint.yaml', 'snapshots:\n  triggers:\n    disable_idle: true\n    test_commands: [mark]\n')
  writeFileSync(join(space.base, 'mark'), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  writeFileSync(join(space.base, 'program.py'), program)
})
afterEach(async () => {
  await endRuns()
  space.remove()
})

/** Stores once before a capture and once after it. Without the wait the first would be too young to be relied on anyway. */
const program = `
import mmap, os, subprocess, sys, time
file = open('f', 'r+b')
os.fsync(file.fileno())
memory = mmap.mmap(file.fileno(), 4096)
memory[0:1] = b'1'
time.sleep(0.5)
open('other', 'w').write('')
subprocess.run(['../mark'])
print('STORED', flush=True)
sys.stdin.readline()
memory[1:2] = b'2'
print('STORED AGAIN', flush=True)
sys.stdin.readline()
memory.close()
file.close()
`

const start = async (tracer: string) => {
  const run = await startRun(space, 'READY; exec python3 ../program.py', { args: ['--tracer', tracer] })
  let output = ''
  run.child.stdout!.on('data', (chunk: string) => {
    output += chunk
  })
  const says = async (text: string) => {
    for (let i = 0; i < 3000 && !output.includes(text); i++) await new Promise(resolve => setTimeout(resolve, 10))
    expect(output).toContain(text)
  }
  return { run, says }
}
let reader: Savepoint
const newest = async (type: string): Promise<Snapshot | undefined> => {
  reader = await space.open()
  const found = reader.snapshots().filter(each => each.type === type)
  return found.sort((a, b) => b.seq - a.seq)[0]
}
const inNewest = async (type: string): Promise<string> => {
  const { id } = (await newest(type))!
  return reader.read(id, 'f').toString().slice(0, 3)
}

it('after a snapshot that was asked for, in another one; without a tracer', async () => {
  const { run, says } = await start('none')
  await says('STORED')
  expect(savepoint(space, ['snapshot', '-m', 'one']).status).toBe(0)
  expect(await inNewest('manual')).toBe('1xx')
  run.say('again')
  await says('STORED AGAIN')
  expect(savepoint(space, ['snapshot', '-m', 'two']).status).toBe(0)
  expect(await inNewest('manual')).toBe('12x')
  run.say('end')
  expect((await run.ended).status).toBe(0)
})

it.each([
  ['a snapshot', ['snapshot', '-m', 'first']],
  ['a run of something else', ['run', '--', 'true']],
])('by a process that is of no run: after %s', async (_, args) => {
  const mapped = await MappedFile.open(space.at('f'))
  try {
    await mapped.store('1')
    // Time itself is waited for: what is younger is not relied on anyway.
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(savepoint(space, args).status).toBe(0)
    await mapped.store('12')
    expect(savepoint(space, ['snapshot', '-m', 'one']).status).toBe(0)
    expect(await inNewest('manual')).toBe('12x')
    await mapped.store('123')
    await mapped.unmap()
    expect(savepoint(space, ['snapshot', '-m', 'two']).status).toBe(0)
    expect(await inNewest('manual')).toBe('123')
  } finally {
    await mapped.unmap()
  }
})

it('by a process that maps a file after it was captured, and reads it before it stores', async () => {
  // Time itself is waited for: what is younger is not relied on anyway.
  await new Promise(resolve => setTimeout(resolve, 500))
  expect(savepoint(space, ['snapshot', '-m', 'first']).status).toBe(0)
  const mapped = await MappedFile.open(space.at('f'))
  try {
    await mapped.look()
    await mapped.store('1')
    expect(savepoint(space, ['snapshot', '-m', 'one']).status).toBe(0)
    expect(await inNewest('manual')).toBe('1xx')
    await mapped.store('12')
    await mapped.unmap()
    expect(savepoint(space, ['snapshot', '-m', 'two']).status).toBe(0)
    expect(await inNewest('manual')).toBe('12x')
  } finally {
    await mapped.unmap()
  }
})

it.each(['seccomp', 'ptrace'])('after a snapshot on the way, at the end: tracer %s', async tracer => {
  const { run, says } = await start(tracer)
  await says('STORED')
  await vi.waitUntil(() => newest('test'), { timeout: 20_000, interval: 50 })
  expect(await inNewest('test')).toBe('1xx')
  run.say('again\nend')
  expect((await run.ended).status).toBe(0)
  expect(await inNewest('final')).toBe('12x')
})

it.each(['seccomp', 'ptrace'])(
  'what a run has mapped, read, stored to and unmapped is changed by it, too: %s',
  async tracer => {
    const script = `import mmap; f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0]; m[0:3] = b'NEW'`
    space.sh('touch -d 2020-01-01 f')
    const { stderr } = savepoint(space, ['run', '--tracer', tracer, '--', 'python3', '-c', script])
    expect([space.read('f')!.slice(0, 3), stderr]).toEqual(['NEW', expect.stringContaining('1 modified')])
    expect([savepoint(space, ['undo']).status, space.read('f')]).toEqual([0, 'x'.repeat(4096)])
  },
)
