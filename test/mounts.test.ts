/** What a run changes through other mounts than ours: sandboxes, `unshare -m`, a directory that is mounted elsewhere. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { asOrdinaryUser, giveToUser, savepointAsUser } from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { cliCommand } from './support/cli.ts'
import { gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const seesCalls = probeTracers().some(({ name, works }) => name === 'seccomp' && works)
const hasMounts = seesCalls && spawnSync('unshare', ['-m', 'true']).status === 0
const asUser = ['sh', ...asOrdinaryUser.before, 'unshare', '-Urm', 'true']
const hasUserMounts =
  seesCalls && spawnSync('sh', ['-c', '"$@"', ...asUser], { ...asOrdinaryUser.spawn, cwd: '/' }).status === 0

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  for (const path of ['src/a', 'src/b', 'gone/x', 'gone too/x']) space.write(path, '1\n')
  mkdirSync(join(space.base, 'elsewhere'))
  savepoint = await space.open()
})
afterEach(() => space.remove())

const snapshots = (type: Snapshot['type']) => savepoint.snapshots().filter(each => each.type === type)
const ops = (path: string): string[] => savepoint.why(path).causes.map(({ event }) => event.op)
const read = (snapshot: Snapshot, path: string) => savepoint.read(snapshot.id, path).toString()

/** Destroys something outside of the sandbox then, so that there is a snapshot on the way. */
const inside = (script: string, unshare = 'unshare -m') => ({
  command: ['sh', '-ec', `${unshare} sh -ec '${script}'\nrm -rf gone`],
})

/** What the run did is known, and its snapshot on the way was one of what it touched. */
function isKnown(): void {
  const [guard] = snapshots('guard')
  expect(guard).toMatchObject({ runOnly: true })
  expect([read(guard!, 'src/a'), read(guard!, 'src/new/deep'), read(guard!, 'src/moved')]).toEqual([
    '2\n',
    '3\n',
    '1\n',
  ])
  expect([ops('src/a'), ops('src/new/deep'), ops('src/b')]).toEqual([['write'], ['write'], ['rename']])
}

async function isTakenBack(): Promise<void> {
  await savepoint.undo()
  expect([space.read('src/a'), space.read('src/new/deep'), space.read('src/b')]).toEqual(['1\n', undefined, '1\n'])
}

/** The same, and whose it was; it can be undone. */
async function isExact(): Promise<void> {
  isKnown()
  const command = savepoint.why('src/a').causes[0]!.execution!.argv.join(' ')
  expect(command).toMatch(/^sh -ec mount/)
  await isTakenBack()
}

const changes = 'echo 2 > a; mkdir new; echo 3 > new/deep; mv b moved'

gated(hasMounts, 'unshare -m, seccomp', 'through a bind mount in a namespace of its own: exact', async () => {
  const script = `mount --bind src ../elsewhere; cd ../elsewhere; ${changes}`
  expect(await savepoint.run(inside(script))).toMatchObject({ exitCode: 0 })
  await isExact()
})

const through = (link: string) =>
  `echo 2 > ${link}/a; mkdir ${link}/new; echo 3 > ${link}/new/deep; mv ${link}/b ${link}/moved`

gated(hasMounts, 'unshare -m, seccomp', 'through an absolute link to what is only there: exact', async () => {
  symlinkSync(join(space.base, 'elsewhere'), join(space.dir, 'link'))
  expect(await savepoint.run(inside(`mount --bind src ../elsewhere; ${through('link')}`))).toMatchObject({
    exitCode: 0,
  })
  await isExact()
})

gated(seesCalls, 'seccomp', 'through a link that means another directory to each who follows it: exact', async () => {
  symlinkSync('/proc/self/cwd', join(space.dir, 'here'))
  giveToUser(space)
  const command = ['sh', '-ec', `cd src; ${through('../here')}; cd ..; rm -rf gone`]
  expect(savepointAsUser(space, ['run', '--', ...command]).status).toBe(0)
  savepoint = await space.open()
  isKnown()
  await isTakenBack()
})

gated(hasUserMounts, 'unshare -Urm as an ordinary user, seccomp', 'the same for an ordinary user', async () => {
  const script = `mount --bind src ../elsewhere; cd ../elsewhere; ${changes}`
  giveToUser(space)
  expect(savepointAsUser(space, ['run', '--', ...inside(script, 'unshare -Urm').command]).status).toBe(0)
  savepoint = await space.open()
  await isExact()
})

/** Python's words that change the same, by these names of `src`. */
const changesBelowRoot = (source: string, other: string) => `import os
os.chroot('.')
open('${source}/a', 'w').write('2\\n')
os.makedirs('${other}/new')
open('${other}/new/deep', 'w').write('3\\n')
os.rename('${source}/b', '${other}/moved')`

const belowRoot: [name: string, script: string][] = [
  ['below another root in the same mounts: exact', changesBelowRoot('/src', '/src')],
  ['below another root, by a link from there and by what lies beyond it: exact', changesBelowRoot('/abs', '../../src')],
]
for (const [name, script] of belowRoot) {
  gated(seesCalls && process.getuid?.() === 0, 'seccomp, root', name, async () => {
    symlinkSync('/src', join(space.dir, 'abs'))
    // Its paths mean nothing outside of it; the shell afterwards has the root that it always had.
    const { exitCode } = await savepoint.run({
      command: ['sh', '-ec', `python3 -c "${script}"; rm -rf gone; rm -rf "$PWD/gone too"`],
    })
    expect(exitCode).toBe(0)
    isKnown()
    expect(ops('gone too/x')).toContain('delete')
    await isTakenBack()
  })
}

gated(hasMounts, 'unshare -m, seccomp', 'with another root, and the target at another place below it', async () => {
  const root = `mount -t tmpfs none ../elsewhere; cd ../elsewhere; mkdir -p old proc work lib lib64 usr bin etc;
    for each in usr lib lib64 bin etc; do mount --rbind /$each $each; done; mount --bind ../work/src work; mount -t proc proc proc
    pivot_root . old; cd /work; umount -l /old; exec sh -ec "${changes}; cp /usr/bin/true /own; /own 1; echo \\"#!/own\\" > /script; chmod +x /script; /script 2"`
  expect(await savepoint.run(inside(root))).toMatchObject({ exitCode: 0 })
  isKnown()
})

gated(
  hasMounts,
  'unshare -m, seccomp',
  'in memory over a directory of the target: nothing of it is changed',
  async () => {
    const script = 'mount -t tmpfs none src; echo 2 > src/a; echo 3 > src/c; echo 4 > real'
    expect(await savepoint.run(inside(script))).toMatchObject({ exitCode: 0 })
    const [guard] = snapshots('guard')
    expect(guard).toMatchObject({ runOnly: true })
    expect([read(guard!, 'real'), read(guard!, 'src/a')]).toEqual(['4\n', '1\n'])
    expect([ops('src/a'), ops('src/c'), ops('real')]).toEqual([[], [], ['write']])
  },
)

gated(hasMounts, 'unshare -m, seccomp', 'a single file that is mounted elsewhere', async () => {
  const script = 'touch ../file; mount --bind src/a ../file; echo 2 > ../file'
  expect(await savepoint.run(inside(script))).toMatchObject({ exitCode: 0 })
  expect(snapshots('guard')[0]).toMatchObject({ runOnly: true })
  expect([read(snapshots('guard')[0]!, 'src/a'), ops('src/a')]).toEqual(['2\n', ['write']])
})

gated(hasMounts, 'unshare -m, seccomp', 'by a process that leaves our mounts and executes nothing', async () => {
  space.write(
    'leave.py',
    `
import ctypes, os
libc = ctypes.CDLL(None)
assert libc.unshare(0x20000) == 0
assert libc.mount(b'none', b'/', None, 1 << 14 | 1 << 18, None) == 0
assert libc.mount(b'src', b'../elsewhere', None, 4096, None) == 0
open('../elsewhere/a', 'w').write('2\\n')
if os.fork() == 0:
    open('../elsewhere/c', 'w').write('3\\n')
    os._exit(0)
os.wait()
`,
  )
  const { exitCode } = await savepoint.run({ command: ['sh', '-ec', 'python3 leave.py; rm -rf gone'] })
  expect(exitCode).toBe(0)
  expect(snapshots('guard')[0]).toMatchObject({ runOnly: true })
  expect([read(snapshots('guard')[0]!, 'src/a'), read(snapshots('guard')[0]!, 'src/c')]).toEqual(['2\n', '3\n'])
})

gated(hasMounts, 'unshare -m, seccomp', 'what it holds open there is captured as long as it does', async () => {
  const script = `mkfifo ../go ../done
    unshare -m sh -ec 'mount --bind src ../elsewhere; exec 3>> ../elsewhere/a; echo > ../done; read x < ../go; echo late >&3; echo > ../done; read x < ../go' &
    read x < ../done; rm -rf gone; echo > ../go; read x < ../done; sleep 2.1; rm -rf 'gone too'; echo > ../go; wait`
  expect(await savepoint.run({ command: ['sh', '-ec', script] })).toMatchObject({ exitCode: 0 })
  const found = snapshots('guard').sort((a, b) => a.createdAt - b.createdAt)
  expect(found.map(each => [each.runOnly, read(each, 'src/a')])).toEqual([[true, '1\nlate\n']])
})

gated(
  hasMounts,
  'unshare -m, seccomp',
  'a directory of the target that the run mounts elsewhere in our own view',
  async () => {
    const [program, ...before] = cliCommand
    const script = 'mount --bind src ../elsewhere; echo 2 > ../elsewhere/a; echo 3 > ../elsewhere/c; rm -rf gone'
    const args = ['-m', program!, ...before, 'run', '--', 'sh', '-ec', script]
    expect(spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })).toMatchObject({
      status: 0,
    })
    expect(snapshots('guard')[0]).toMatchObject({ runOnly: true })
    expect([read(snapshots('guard')[0]!, 'src/a'), ops('src/a'), ops('src/c')]).toEqual(['2\n', ['write'], ['write']])
  },
)

gated(hasMounts, 'unshare -m, seccomp', 'one that had been mounted there before the run', async () => {
  const [program, ...before] = cliCommand
  const run = [program!, ...before, 'run', '--', 'sh', '-ec', 'echo 2 > ../elsewhere/a; rm -rf gone']
  const script = 'mount --bind src ../elsewhere; exec "$@"'
  const args = ['-m', 'sh', '-ec', script, 'sh', ...run]
  expect(spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })).toMatchObject({ status: 0 })
  expect(snapshots('guard')[0]).toMatchObject({ runOnly: true })
  expect([read(snapshots('guard')[0]!, 'src/a'), ops('src/a')]).toEqual(['2\n', ['write']])
})

gated(hasMounts, 'unshare -m, seccomp', 'in one inside of a target a run has a timeline of its own', async () => {
  await savepoint.snapshot({ label: 'around' })
  const script = `mount --bind ../elsewhere src; echo 1 > src/here; cd src
    "$@" run -q -- rm here; "$@" undo -q; cat here; "$@" runs --json`
  const args = ['-m', 'sh', '-ec', script, 'sh', ...cliCommand]
  const { stdout } = spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })
  const [content, ...runs] = stdout.split('\n')
  expect([content, JSON.parse(runs.join('\n')).length, savepoint.runs().length]).toEqual(['1', 1, 0])
})

gated(hasMounts, 'unshare -m, seccomp', 'by a second path to the target a directory is the same one', async () => {
  const { id } = await savepoint.snapshot()
  for (const path of ['src/a', 'src/b', 'gone/x', 'gone too/x']) space.write(path, '2\n')
  const script = `mount --bind . ../elsewhere; cd ../elsewhere/src
    "$@" revert -q a --from ${id}; cat a b; "$@" rollback -q ${id}; cat b ../gone/x
    cd ../..; "$@" -t elsewhere revert -q elsewhere/gone/x --from ${id}; cat elsewhere/gone/x
    "$@" rollback -q ${id} --to elsewhere/../out -t elsewhere; ls out`
  const args = ['-m', 'sh', '-ec', script, 'sh', ...cliCommand]
  const { stdout, stderr } = spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })
  expect({ stdout, stderr }).toEqual({ stdout: '1\n2\n1\n2\n1\ngone\ngone too\nsrc\n', stderr: '' })
})

/** As a project in the image of a container. A filesystem of its own, because that of the test may be an overlay. */
gated(hasMounts, 'unshare -m, seccomp', 'a directory of the lower layer of an overlay stays the same one', async () => {
  const script = `mount -t tmpfs none ../elsewhere; cd ../elsewhere; mkdir -p lower/work upper inner over; echo 1 > lower/work/f
    mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=inner over; cd over/work
    "$@" run -q -- sh -c 'echo 2 > f'; "$@" undo -q; cat f
    cd ../..; umount over; rm -rf upper/work inner/*; mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=inner over; cd over/work
    "$@" snapshot -q --force > /dev/null; echo 3 > f; "$@" rollback -q HEAD; cat f`
  const args = ['-m', 'sh', '-ec', script, 'sh', ...cliCommand]
  const { stdout, stderr } = spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })
  expect({ stdout, stderr }).toEqual({ stdout: '1\n1\n', stderr: '' })
})

/** As sshfs or NFS whose server is away: whoever looks into it waits for ever. */
const hasFuse = hasMounts && existsSync('/dev/fuse')
gated(hasFuse, 'unshare -m, seccomp, FUSE', 'one inside of a target that does not answer stops nothing', async () => {
  const script = `mkdir away; exec 3<> /dev/fuse
    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none away
    timeout -s KILL 20 "$@" run -q -- sh -c 'echo 2 > src/a' 3>&-; timeout -s KILL 20 "$@" undo -q 3>&-; cat src/a`
  const args = ['-m', 'sh', '-ec', script, 'sh', ...cliCommand]
  const { stdout, stderr } = spawnSync('unshare', args, { cwd: space.dir, env: space.env, encoding: 'utf8' })
  expect({ stdout, stderr }).toEqual({ stdout: '1\n', stderr: '' })
})

gated(hasMounts, 'unshare -m, seccomp', 'our own directory is not changed through another mount either', async () => {
  const script = 'mount --bind "$SAVEPOINT_HOME" ../elsewhere; ! rm -rf ../elsewhere/store 2>/dev/null'
  expect(await savepoint.run(inside(script))).toMatchObject({ exitCode: 0 })
})

const makesDirectory = `
#include <sys/stat.h>
int main(int count, char **arguments) { return count > 1 ? -mkdir(arguments[1], 0700) : 1; }
`

/**
 * `program` has the same name here and below another root, and there another program is meant: as with `awk` in a container,
 * by a link from the root (/etc/alternatives). `enter`: the words before its name that execute it there.
 */
async function isToldApart(enter: (root: string) => Promise<string>): Promise<void> {
  const [bin, real, root] = ['bin', 'real', 'root'].map(name => join(space.base, name)) as [string, string, string]
  mkdirSync(join(root, 'old'), { recursive: true })
  for (const top of ['', root]) {
    for (const each of [bin, real]) mkdirSync(top + each, { recursive: true })
    compileC(`${top}${real}/program`, makesDirectory, '-static')
    symlinkSync(`${real}/program`, `${top}${bin}/program`)
  }
  const script = `${bin}/program ours; ${await enter(root)} ${bin}/program /theirs; ${bin}/program last`
  expect(await savepoint.run({ command: ['sh', '-ec', script] })).toMatchObject({ exitCode: 0 })
  const programs = savepoint.trace().executions.filter(({ argv }) => argv[0] === `${bin}/program`)
  expect(programs.map(({ argv, exitCode }) => [argv[1], exitCode])).toEqual([
    ['ours', 0],
    ['/theirs', 0],
    ['last', 0],
  ])
}

gated(hasMounts, 'unshare -m, seccomp', 'a program below another root that is called as one of ours', async () => {
  await isToldApart(async root => `chroot ${root}`)
})

gated(hasMounts, 'unshare -m, seccomp', 'the same in mounts that others made', async () => {
  const waits = 'mount --rbind "$1" "$1"; cd "$1"; pivot_root . old; echo ready; read end'
  let holder: ChildProcess | undefined
  try {
    await isToldApart(async root => {
      holder = spawn('unshare', ['-m', 'sh', '-ec', waits, 'sh', root])
      await once(holder.stdout!, 'data')
      return `nsenter -t ${holder.pid} -m`
    })
  } finally {
    holder?.kill('SIGKILL')
  }
})
