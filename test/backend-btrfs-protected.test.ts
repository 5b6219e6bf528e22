/** What btrfs keeps for us cannot be deleted or made writable by processes of a run, in our home and beside the target. */
import { existsSync, readdirSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { onBtrfs, run, useDisk } from './support/backend-scene.ts'
import { savepoint as runCli, savepointInShell } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
const { works } = probeTracers().find(({ name }) => name === 'seccomp')!
let [space, elsewhere]: Workspace[] = []

const onDisk = (title: string, work: () => Promise<void>) =>
  gated(scene.possible && works && canDropPrivilege, `${scene.needs}, seccomp, setpriv`, title, async () => {
    space = scene.make({ SAVEPOINT_TRACER: 'seccomp' })
    elsewhere = new Workspace()
    try {
      await work()
    } finally {
      scene.remove(space)
      elsewhere.remove()
    }
  })

useDisk(scene)

/** Not read yet. */
async function keep(savepoint: Savepoint): Promise<string> {
  space!.write('a', 'captured\n')
  const { id } = await savepoint.snapshot({ label: 'one' })
  space!.write('a', 'later\n')
  return savepoint.nativeUsage(id)!.where
}

const numberOf = (path: string) => run('btrfs', 'inspect-internal', 'rootid', path).trim()

/** BTRFS_IOC_SNAP_DESTROY_V2 with BTRFS_SUBVOL_SPEC_BY_ID, said of another directory of its filesystem. */
const byNumber = (number: string, place: string) =>
  `python3 -c "import fcntl, os, struct, sys; sys.excepthook = lambda *e: print(e[1]); fcntl.ioctl(os.open('${place}', 0), 0x5000943f, bytearray(struct.pack('16xQ32xQ4032x', 16, ${number})))"`

/** Commands that would destroy it, each of which fails. */
function refuses(ways: string[], { home }: { home: string } = space!): void {
  const script = ways.map((way, i) => `(${way}) >> said 2>&1 && echo ${i} >> done`)
  runCli(space!, ['--home', home, 'run', '--', 'sh', '-c', script.join('\n')])
  expect([existsSync(space!.at('done')), space!.read('said')]).toEqual([
    false,
    expect.stringContaining('Permission denied'),
  ])
  for (const line of space!.read('said')!.trim().split('\n')) expect(line).toMatch(/denied/)
}

const destroying = (where: string) => [
  `btrfs -q subvolume delete '${where}'`,
  ...[dirname(where), space!.dir, space!.at('a')].map(place => byNumber(numberOf(where), place)),
  `btrfs property set -f '${where}' ro false`,
  `mv '${where}' hidden`,
  `rmdir '${where}'`,
]

onDisk('in the home, those of another timeline as well, by whatever name', async () => {
  const other = join(space!.base, 'other')
  run('btrfs', 'subvolume', 'create', other)
  const theirs = await space!.open({ cwd: other, leaveUnread: true })
  const { id } = await theirs.snapshot({ label: 'theirs' })
  const ours = await space!.open({ leaveUnread: true })
  const where = await keep(ours)
  symlinkSync(dirname(where), space!.at('link'))
  refuses([
    ...destroying(where),
    ...destroying(theirs.nativeUsage(id)!.where),
    `btrfs -q subvolume delete link/${basename(where)}`,
  ])
  expect(run('btrfs', 'property', 'get', where, 'ro')).toBe('ro=true\n')
  expect(scene.kept(space!)).toHaveLength(2)
  expect((await space!.open()).read('one', 'a').toString()).toBe('captured\n')
})

onDisk('beside the target, with the directory that they are in', async () => {
  const savepoint = await space!.open({ home: elsewhere!.home, leaveUnread: true })
  const where = await keep(savepoint)
  const shared = join(space!.base, '.savepoint-snapshots')
  expect(dirname(dirname(where))).toBe(shared)
  refuses([...destroying(where), `mv '${shared}' '${shared}.gone'`, `rm -rf '${shared}/.gitignore'`], elsewhere!)
  expect(readdirSync(shared)).toEqual(expect.arrayContaining(['.gitignore']))
  expect((await space!.open({ home: elsewhere!.home })).read('one', 'a').toString()).toBe('captured\n')
})

onDisk('a subvolume of its own is deleted by its number, where that tells which one it is', async () => {
  const outer = join(space!.base, 'outer')
  run('btrfs', 'subvolume', 'create', outer)
  const home = join(outer, 'home')
  const where = await keep(await space!.open({ home, leaveUnread: true }))
  refuses([byNumber(numberOf(where), space!.dir)], { home })
  const own = [space!.at('own'), join(space!.base, 'beside'), `${home}-beside`]
  for (const path of own) run('btrfs', 'subvolume', 'create', path)
  const script = own.map(path => byNumber(numberOf(path), space!.dir)).join('\n')
  runCli(space!, ['--home', home, 'run', '--', 'sh', '-c', script])
  expect([where, ...own].map(path => existsSync(path))).toEqual([true, false, false, false])
})

onDisk('nor is a subvolume deleted that the home lies in, by its name or its number', async () => {
  const outer = join(space!.base, 'outer')
  run('btrfs', 'subvolume', 'create', outer)
  const home = join(outer, 'of', 'home')
  space!.write('a', 'captured\n')
  await (await space!.open({ home, backend: 'cas' })).snapshot({ label: 'one' })
  refuses([`btrfs -q subvolume delete '${outer}'`, byNumber(numberOf(outer), space!.dir)], { home })
  expect((await space!.open({ home })).read('one', 'a').toString()).toBe('captured\n')
})

onDisk('an ordinary user deletes none by its number, because he is not told where it lies', async () => {
  await space!.open()
  const own = space!.at('own')
  run('btrfs', 'subvolume', 'create', own)
  const script = `${byNumber(numberOf(own), space!.dir)} > said; btrfs -q subvolume delete own`
  await runAsUser(space!, [['run', { command: ['sh', '-c', script] }]])
  expect([space!.read('said'), existsSync(own)]).toEqual([expect.stringContaining('Permission denied'), false])
})

onDisk('what a command starts as Savepoint is no Savepoint: a run in the run', async () => {
  const where = await keep(await space!.open({ leaveUnread: true }))
  const inner = (tracer: string) =>
    `${savepointInShell} run -q --tracer ${tracer} -- btrfs -q subvolume delete '${where}' >> inner 2>&1`
  runCli(space!, ['run', '--', 'sh', '-c', `${inner('none')}; ${inner('auto')}`])
  expect(space!.read('inner')!.match(/Permission denied/g)).toHaveLength(2)
  expect(existsSync(where)).toBe(true)
})

onDisk('a recording refuses it as well', async () => {
  const where = await keep(await space!.open({ leaveUnread: true }))
  const script = `btrfs property set -f '${where}' ro false; btrfs -q subvolume delete '${where}'`
  const out = join(elsewhere!.base, 'out')
  const { stderr } = runCli(space!, ['record', '--output', out, '--', 'sh', '-c', script])
  expect(stderr.match(/Permission denied/g)).toHaveLength(2)
})

onDisk('Savepoint itself keeps and deletes there in a run, also without privilege', async () => {
  const other = join(space!.base, 'other')
  run('btrfs', 'subvolume', 'create', other)
  await space!.open()
  // To find out that it works, one that is read-only is made and deleted.
  const command = [
    'sh',
    '-c',
    `cd '${other}' && env -u SAVEPOINT_RUN ${savepointInShell} snapshot --backend btrfs > '${space!.at('said')}' 2>&1`,
  ]
  const { results } = await runAsUser(space!, [['run', { command }]])
  expect([results?.[0], space!.read('said')]).toEqual([
    expect.objectContaining({ exitCode: 0 }),
    expect.stringMatching(/snap_/),
  ])
  expect(scene.kept(space!)).toEqual([expect.stringContaining(join(space!.home, 'native'))])
})
