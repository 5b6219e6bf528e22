/** Probes of btrfs leave nothing behind: neither where they are killed, nor where the target is closed to its owner. */
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { runCli } from './support/cli.ts'
import { finishVerbs, startVerbs } from './support/engine-process.ts'
import { gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})

const probes = () =>
  run('find', space.base, '-name', '.probe-*', '-o', '-name', '.savepoint-probe').split('\n').filter(Boolean)

/** Where it deletes the second one, which is a snapshot of the target. */
function killDoctor(): void {
  const programs = join(space.base, 'programs')
  const real = run('sh', '-c', 'command -v btrfs').trim()
  mkdirSync(programs)
  const script = `if [ "$2" = delete ] && ! mkdir '${programs}/first' 2>/dev/null; then kill -s KILL $PPID; exit 1; fi`
  writeFileSync(join(programs, 'btrfs'), `#!/bin/sh\n${script}\nexec ${real} "$@"\n`)
  chmodSync(join(programs, 'btrfs'), 0o755)
  const env = { ...space.env, PATH: `${programs}${delimiter}${process.env.PATH}` }
  expect(runCli(space, ['doctor'], { env }).signal).toBe('SIGKILL')
}

for (const next of ['gc', 'doctor', 'first snapshot'])
  onDisk(`what a killed one left goes with the next ${next}`, async () => {
    space.write('a')
    if (next === 'gc') await (await space.open()).snapshot({})
    killDoctor()
    expect(probes().at(-1)).toContain('/.probe-')
    if (next === 'gc') await (await space.open()).gc()
    else if (next === 'doctor') runCli(space, ['doctor'])
    else await (await space.open()).snapshot({})
    expect(probes()).toEqual([])
    expect(scene.kept(space)).toHaveLength(next === 'doctor' ? 0 : 1)
  })

onDisk('nothing is made where no snapshot can be: beside a mount point, above a home on another disk', () => {
  const beside = dirname(scene.disk())
  const elsewhere = new Workspace()
  try {
    const there = () => [readdirSync(beside), readdirSync(elsewhere.base), readdirSync(elsewhere.dir)]
    const before = there()
    const { stdout } = runCli(elsewhere, ['doctor', '-t', `dir:${scene.disk()}`])
    expect(stdout).toMatch(/btrfs: .*\/\.savepoint-snapshots\/.* is not on btrfs/)
    expect(there()).toEqual(before)
  } finally {
    elsewhere.remove()
  }
})

onDisk('what a killed snapshot left goes with gc, which says so', async () => {
  space.write('a')
  const killed = startVerbs(space, [['snapshot', {}]], { failpoint: 'native:captured' })
  expect((await finishVerbs(killed)).signal).toBe('SIGKILL')
  expect(scene.kept(space)).toHaveLength(1)
  const said = runCli(space, ['gc']).stdout
  expect(said).toMatch(/^Removed 1 btrfs snapshot that nothing needs\nNothing else to free: the store holds /)
  expect(scene.kept(space)).toEqual([])
  expect(JSON.parse(runCli(space, ['gc', '--json']).stdout)).toMatchObject({ removed_kept: 0 })
})

gated(
  scene.possible && canDropPrivilege,
  'root, mkfs.btrfs and setpriv',
  'a target that its owner may not write to is probed, kept and purged by an ordinary user',
  async () => {
    space.write('secret')
    chmodSync(space.dir, 0o555)
    const taken = await runAsUser(space, [['snapshot', {}]])
    expect(taken.results).toMatchObject([{ backend: 'btrfs' }])
    expect([probes(), scene.kept(space).length]).toEqual([[], 1])
    const { error } = await runAsUser(space, [['purge', 'secret']])
    expect([error, scene.kept(space)]).toEqual([undefined, []])
    chmodSync(space.dir, 0o755)
  },
)
