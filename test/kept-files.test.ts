/** T11: what a run makes and destroys between two snapshots can be had back. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { killedRun } from './support/killed-run.ts'
import { gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(() => {
  space = new Workspace()
  space.write('old', 'old\n')
})
afterEach(() => space.remove())

async function run(script: string): Promise<void> {
  savepoint = await space.open()
  expect((await savepoint.run({ command: ['sh', '-c', script] })).exitCode).toBe(0)
}

const kept = (): Snapshot[] => savepoint.snapshots().filter(({ type }) => type === 'kept')
const python = (code: string) => `python3 -c '${code}'`
const spools = () =>
  readdirSync(join(space.home, 'timelines'), { recursive: true, encoding: 'utf8' }).filter(path =>
    path.endsWith('/kept'),
  )

describe('a file that was made in the run', () => {
  const ways: [way: string, script: string][] = [
    ['removed', 'echo precious > f; rm f'],
    ['overwritten', 'echo precious > f; echo other > f'],
    ['emptied by name', `echo precious > f; ${python('import os; os.truncate("f", 0)')}`],
    ['emptied by descriptor', `echo precious > f; ${python('open("f", "r+").truncate(0)')}`],
    ['replaced by another', `echo precious > f; echo x > g; ${python('import os; os.rename("g", "f")')}`],
    ['removed with its directory', 'mkdir d; echo precious > d/f; rm d/f; rmdir d'],
    ['moved and removed', `echo precious > g; ${python('import os; os.rename("g", "f")')}; rm f`],
  ]
  it.each(ways)('%s', async (_, script) => {
    await run(script)
    const path = script.includes('d/f') ? 'd/f' : 'f'
    const [snapshot, ...others] = kept()
    expect(others).toEqual([])
    expect(savepoint.read(snapshot!.id, path).toString()).toBe('precious\n')
    expect(snapshot!.label).toBe(path)
    await savepoint.revert(path, { from: snapshot!.id })
    expect(space.read(path)).toBe('precious\n')
    expect(spools()).toEqual([])
  })

  it('says which command destroyed it, and comes back without naming the snapshot', async () => {
    await run('echo precious > f; chmod 640 f; rm f')
    expect(kept().map(({ command }) => command)).toEqual(['rm f'])
    await savepoint.revert('f')
    expect(space.sh('stat -c %a f; cat f')).toBe('640\nprecious\n')
  })

  it('is dated before 1970, and nothing fails by that, then or later', async () => {
    await run('echo precious > f; touch -d "1960-01-01 00:00:00.5 UTC" f; rm f')
    await savepoint.revert('f')
    expect(space.sh('stat -c %Y f; cat f')).toBe('-315619200\nprecious\n')
    await savepoint.snapshot({ label: 'later' })
  })

  it('is counted in the summary of the run, with the command that shows it', () => {
    const kept = (script: string) => {
      const { stderr } = runCli(space, ['run', '--json', '--', 'sh', '-c', script])
      return JSON.parse(stderr.trim().split('\n').at(-1)!).kept
    }
    expect(kept('echo new > new; echo more >> old')).toEqual({ files: 0, snapshots: [] })
    const twice = kept('echo 1 > f; echo 2 > f; echo 3 > f; echo precious > d; rm f d')
    expect(twice).toEqual({ files: 2, snapshots: expect.objectContaining({ length: 3 }) })
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', 'echo precious > g; rm g'])
    const [, id] = /: 1 file deleted or overwritten on the way is kept: savepoint show (snap_\w+)\n/.exec(stderr)!
    expect(runCli(space, ['show', id!]).stdout).toMatch(/\bg$/m)
    const many = runCli(space, ['run', '--', 'sh', '-c', 'echo 1 > f; echo 2 > f; rm f'])
    expect(many.stderr).toMatch(/kept: savepoint snapshots run_\w+\n/)
  })

  it('its directory comes back as it was', async () => {
    await run('mkdir -m 700 d d/e; echo precious > d/e/f; rm d/e/f; rmdir d/e d')
    await savepoint.revert('d')
    expect(space.sh('stat -c %a d d/e; cat d/e/f')).toBe('700\n700\nprecious\n')
  })

  it('the run can be undone all the same, and history tells it', async () => {
    await run('echo precious > f; rm f; echo more >> old')
    const { versions } = await savepoint.history('f')
    expect(versions.map(({ status }) => status)).toEqual(['new', 'deleted'])
    await savepoint.undo()
    expect(space.sh('ls; cat old')).toBe('old\nold\n')
  })
})

it('of a path that is written again and again the last three', async () => {
  await run('for i in 1 2 3 4 5 6; do echo $i > f; rm f; done')
  expect(kept().map(({ id }) => savepoint.read(id, 'f').toString())).toEqual(['4\n', '5\n', '6\n'])
})

it('of a large file that is written again and again no more is stored than that', async () => {
  const code = 'import os; [open("f", "wb").write(os.urandom(1 << 20)) for i in range(20)]'
  await run(python(code))
  const stored = kept().reduce((sum, { sizeDelta }) => sum + sizeDelta, 0)
  expect(kept()).toHaveLength(3)
  expect(stored).toBeGreaterThan(3 * 2 ** 20)
  expect(stored).toBeLessThan(3.5 * 2 ** 20)
})

describe('while no snapshot is taken', () => {
  const MIB = 2 ** 20
  /** Writes 20 times 8 MiB, and waits until the spool is small, or for ten seconds. */
  const code = (write: string) => `
import glob, os, time
for i in range(20):
    ${write}
def size():
    return sum(os.path.getsize(f) for f in glob.glob(os.environ["SAVEPOINT_HOME"] + "/timelines/*/runs/*/kept/*"))
for i in range(100):
    if size() < 80 * ${MIB}: break
    time.sleep(0.1)
open("size", "w").write(str(size()))`
  const ways: [way: string, write: string][] = [
    ['overwritten', `open("f", "wb").write(os.urandom(8 * ${MIB}))`],
    ['replaced', `open("g", "wb").write(os.urandom(8 * ${MIB})); os.rename("g", "f")`],
  ]

  it.each(ways)(
    'what is %s again and again takes no more room than that, and a little',
    async (_, write) => {
      await run(python(code(write)))
      expect(Number(space.read('size'))).toBeLessThan(80 * MIB)
      expect(kept()).toHaveLength(3)
      expect(new Set(kept().map(({ id }) => savepoint.read(id, 'f').subarray(0, 16).toString('hex'))).size).toBe(3)
    },
    60_000,
  )
})

it('not what is in the snapshot before, not what is excluded, nothing of git, nothing empty', async () => {
  space.write('.gitignore', 'ignored/\n*.tmp\n')
  await run(
    'git init -q .; mkdir ignored; for f in ignored/a a.tmp .git/x; do echo 1 > $f; rm $f; done; : > e; rm e; rm old',
  )
  expect(kept()).toEqual([])
})

it('thousands at once, also where no link can be made', async () => {
  const home = join('/dev/shm', `savepoint-kept-${process.pid}`)
  mkdirSync(home)
  try {
    savepoint = await space.open({ home, env: { ...space.env, SAVEPOINT_HOME: home } })
    const code = `
import os
os.mkdir("d")
for i in range(2500):
    with open(f"d/{i}", "w") as f: f.write(f"content {i}")
for i in range(2500): os.unlink(f"d/{i}")`
    expect((await savepoint.run({ command: ['python3', '-c', code] })).exitCode).toBe(0)
    for (const i of [0, 1234, 2499]) {
      await savepoint.revert(`d/${i}`)
      expect(space.read(`d/${i}`)).toBe(`content ${i}`)
    }
  } finally {
    savepoint.close()
    rmSync(home, { recursive: true })
  }
}, 60_000)

it('also when we are killed before it was stored', async () => {
  expect(killedRun(space, 'echo precious > f; rm f')).toBe('SIGKILL')
  savepoint = await space.open()
  await savepoint.revert('f')
  expect(kept()).toHaveLength(1)
  expect(space.read('f')).toBe('precious\n')
})

it('a purge takes what was kept with it, also of a run that was killed', async () => {
  space.write('f', 'old\n')
  savepoint = await space.open()
  await savepoint.snapshot()
  expect(killedRun(space, 'echo secret > f; rm f; echo other > g; rm g')).toBe('SIGKILL')
  await savepoint.purge('f')
  await savepoint.revert('g')
  expect([space.read('g'), kept().map(({ label }) => label)]).toEqual(['other\n', ['g']])
})

gated(canDropPrivilege, 'setpriv', 'for an ordinary user', async () => {
  const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', 'echo precious > f; rm f'] }]])
  expect(error).toBeUndefined()
  savepoint = await space.open()
  await savepoint.revert('f')
  expect(space.read('f')).toBe('precious\n')
})
