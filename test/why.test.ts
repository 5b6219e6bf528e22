/** Which files a run changes, and by which command: every call that can change one, whatever the way to it. */
import { symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint, WhyResult } from '../src/index.ts'
import { compileC } from './support/c-program.ts'
import { runCli } from './support/cli.ts'
import { foreignProgram, NO_FOREIGN_CALLS } from './support/foreign-program.ts'
import { killedRun } from './support/killed-run.ts'
import { gated } from './support/machine.ts'
import { uringWriter } from './support/uring-writer.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

/** The exit code where nothing can be opened by a handle: it takes a right that only root has. */
const NO_HANDLES = 78

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  savepoint = await space.open()
})
afterEach(() => space.remove())

const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })
const ops = (path: string): string[] => savepoint.why(path).causes.map(({ event }) => event.op)
const commands = ({ causes }: WhyResult): (string | undefined)[] =>
  causes.map(({ execution }) => execution?.argv.join(' '))

/** [call in Python, path → operations that must be told of it]. `f`, `g` are files, `d` is a directory, `s` a link to `f`. */
const calls: [call: string, told: Record<string, string[]>][] = [
  ['open("f", "w").close()', { f: ['write'] }],
  ['open("f", "a").close()', { f: ['write'] }],
  ['open("new", "x").close()', { new: ['write'] }],
  ['open("s", "a").close()', { f: ['write'], s: [] }],
  ['os.symlink("target", "dangling"); open("dangling", "w").close()', { target: ['write'] }],
  ['os.open("f", os.O_RDONLY | os.O_TRUNC)', { f: ['write'] }],
  ['open("f").read()', { f: [] }],
  ['os.truncate("f", 1)', { f: ['truncate'] }],
  ['os.rename("f", "g")', { f: ['rename'], g: ['rename'] }],
  ['os.rename("d/e", "moved")', { 'd/e': ['rename'], moved: ['rename'] }],
  ['os.rename("d", "moved"); os.rename("moved", "back")', { 'd/e/deep': ['rename'], back: ['rename'] }],
  ['os.unlink("f")', { f: ['delete'] }],
  ['os.unlink("s")', { s: ['delete'], f: [] }],
  ['os.rmdir("empty")', { empty: ['delete'] }],
  ['os.mkdir("made")', { made: ['create'] }],
  ['os.link("f", "h")', { h: ['link'], f: ['link'] }],
  ['os.symlink("f", "t")', { t: ['create'], f: [] }],
  ['os.mkfifo("p")', { p: ['create'] }],
  ['os.chmod("f", 0o600)', { f: ['attributes'] }],
  ['os.chmod("s", 0o600)', { f: ['attributes'], s: [] }],
  ['os.chown("f", -1, -1)', { f: ['attributes'] }],
  ['os.lchown("s", -1, -1)', { s: ['attributes'], f: [] }],
  ['os.utime("f", (1, 1))', { f: ['attributes'] }],
  ['os.utime("s", (1, 1), follow_symlinks=False)', { s: ['attributes'], f: [] }],
  ['os.setxattr("f", "user.a", b"1")', { f: ['attributes'] }],
  ['os.setxattr("f", "user.a", b"1"); os.removexattr("f", "user.a")', { f: ['attributes'] }],
  ['fd = os.open("f", os.O_RDONLY); os.fchmod(fd, 0o600)', { f: ['attributes'] }],
  ['fd = os.open("f", os.O_RDONLY); os.fchown(fd, -1, -1)', { f: ['attributes'] }],
  ['fd = os.open("f", os.O_RDONLY); os.utime(fd, (1, 1))', { f: ['attributes'] }],
  ['fd = os.open("f", os.O_RDONLY); os.setxattr(fd, "user.a", b"1")', { f: ['attributes'] }],
  [
    'fd = os.open("f", os.O_RDONLY); flags, = struct.unpack("q", fcntl.ioctl(fd, 0x80086601, bytes(8))); fcntl.ioctl(fd, 0x40086602, struct.pack("q", flags | 0x80))',
    { f: ['attributes'] },
  ],
  ['socket.socket(socket.AF_UNIX).bind("sock")', { sock: ['create'] }],
  ['d = os.open("d", os.O_RDONLY); os.open("e/new", os.O_CREAT | os.O_WRONLY, dir_fd=d)', { 'd/e/new': ['write'] }],
  ['d = os.open("d", os.O_RDONLY); os.unlink("e/deep", dir_fd=d)', { 'd/e/deep': ['delete'] }],
  ['d = os.open("d", os.O_RDONLY); os.rename("e/deep", "up", src_dir_fd=d, dst_dir_fd=d)', { 'd/up': ['rename'] }],
  ['os.chdir("d/e"); os.unlink("../../f")', { f: ['delete'] }],
  ['os.chdir("d"); os.mkdir("./x/"); os.rmdir("x/.." + "/x")', { 'd/x': ['delete', 'create'] }],
  ['open("loop/d/e/deep", "w").close()', { 'd/e/deep': ['write'] }],
  ['open("/proc/self/cwd/f", "w").close()', { f: ['write'] }],
  ['fd = os.open("f", os.O_RDONLY); open("/proc/self/fd/%d" % fd, "w").close()', { f: ['write'] }],
  ['libc.syscall(316, -100, b"f", -100, b"g", 2)', { f: ['exchange'], g: ['exchange'] }],
  ['libc.syscall(437, -100, b"f", struct.pack("QQQ", os.O_WRONLY, 0, 0), 24)', { f: ['write'] }],
  ['libc.syscall(437, -100, b"f", struct.pack("QQQ", 0, 0, 0), 24)', { f: [] }],
  ['libc.syscall(452, -100, b"f", 0o600, 0)', { f: ['attributes'] }],
  ['libc.syscall(85, b"f", 0o600)', { f: ['write'] }],
  ['os.unlink("\\udcff")', { '\udcff': ['delete'] }],
]

describe('a call that changes a file', () => {
  it.each(calls)('%s', async (call, told) => {
    space.sh(
      'mkdir -p d/e empty; echo 1 > f; echo 2 > g; echo 3 > d/e/deep; ln -s f s; ln -s . loop; echo 4 > "$(printf \'\\377\')"',
    )
    const script = `import os, socket, struct, fcntl, ctypes\nlibc = ctypes.CDLL(None)\n${call.replaceAll('; ', '\n')}\n`
    const { exitCode } = await savepoint.run({ command: ['python3', '-B', '-c', script] })
    expect(exitCode).toBe(0)
    for (const [path, expected] of Object.entries(told)) {
      const seen = new Set(ops(path))
      expect([...seen]).toEqual(expect.arrayContaining([...new Set(expected)]))
      expect(seen.size).toBe(new Set(expected).size)
    }
  })
})

it('calls of 32-bit programs are told as those of others are', async () => {
  space.write('old', 'old')
  space.write('gone/x', 'x')
  compileC(join(space.base, 'program'), foreignProgram)
  const { exitCode } = await run('../program by-other; [ $? != 77 ] || exit 77; rm -rf gone')
  if (exitCode === NO_FOREIGN_CALLS) return
  expect(exitCode).toBe(0)
  expect(['old', 'made', 'bound'].map(ops)).toEqual([['write'], ['create'], ['create']])
  for (const path of ['old', 'made', 'bound']) expect(commands(savepoint.why(path))).toEqual(['../program by-other'])
  expect(commands(savepoint.why('by-other'))).toEqual(['mkdir by-other'])
  // And what they change is all that need be looked at.
  expect(savepoint.snapshots().find(({ type }) => type === 'guard')).toMatchObject({ runOnly: true })
})

describe('what no call told, and a snapshot found, is likely the work of what ran then', () => {
  it('by io_uring', async () => {
    space.write('old', 'old')
    compileC(join(space.base, 'uring'), uringWriter)
    const { exitCode } = await savepoint.run({ command: ['../uring', 'old', 'new'], allowIoUring: true })
    if (exitCode === 77) return
    expect([exitCode, space.read('old')]).toEqual([0, 'new'])
    const [cause] = savepoint.why('old').causes
    expect(cause).toMatchObject({ event: { op: 'changed' }, outcome: 'changed', execution: undefined })
    expect(cause!.likely.map(({ argv }) => argv[0])).toEqual(['../uring'])
    space.write('old', 'by hand')
    await savepoint.snapshot()
    expect(savepoint.why('old').causes.length).toBe(1)
  })

  it('after we were killed, also where the next snapshot is of somebody else', async () => {
    space.write('a', '1')
    expect(killedRun(space, 'sleep 0.3; echo 2 > a; echo new > b')).toBe('SIGKILL')
    expect(savepoint.why('b').causes).toEqual([])
    await savepoint.snapshot()
    for (const path of ['a', 'b']) {
      const { causes } = savepoint.why(path)
      expect(causes.length).toBeGreaterThan(0)
      expect(causes[0]!.event.run).toMatch(/^run_/)
      const by = causes.flatMap(({ execution, likely }) => (execution ? [execution] : likely))
      expect(by.some(({ argv }) => argv[0] === 'sh')).toBe(true)
    }
  })
})

/** Empties the file `old` by a handle, which has no path. */
const byHandle = `
#define _GNU_SOURCE
#include <fcntl.h>
int main(void) {
  union { struct file_handle head; char room[sizeof(struct file_handle) + MAX_HANDLE_SZ]; } handle;
  int mount;
  handle.head.handle_bytes = MAX_HANDLE_SZ;
  if (name_to_handle_at(AT_FDCWD, "old", &handle.head, &mount, 0) != 0) return ${NO_HANDLES};
  return open_by_handle_at(AT_FDCWD, &handle.head, O_WRONLY | O_TRUNC) < 0 ? ${NO_HANDLES} : 0;
}
`

it('what is opened without a path: the program that did it is named as likely', async () => {
  space.write('old', 'old')
  space.write('beside', 'old')
  compileC(join(space.base, 'program'), byHandle)
  const { exitCode } = await run('echo 1 > beside; ../program')
  if (exitCode === NO_HANDLES) return
  expect(exitCode).toBe(0)
  const [before, after] = savepoint.snapshots()
  const { causes } = savepoint.why('old')
  expect(causes.map(({ likely }) => likely.map(({ argv }) => argv))).toEqual([[['../program']]])
  expect(causes).toMatchObject([{ event: { op: 'changed' }, outcome: 'changed', before: { id: before!.id } }])
  expect(causes[0]!.after!.id).toBe(after!.id)
  expect(commands(savepoint.why('beside'))).toEqual(['sh -c echo 1 > beside; ../program'])
  expect(runCli(space, ['why', 'old']).stdout).toMatch(/^changed .*\n {2}likely by \.\.\/program \(run_/)
  expect(runCli(space, ['trace']).stdout).toMatch(/\.\.\/program .*changes files by calls that are not told/)
  // What others do between two runs is none of theirs.
  space.write('old', 'by hand')
  await run('true')
  expect(savepoint.why('old').causes).toHaveLength(1)
})

describe('who did it', () => {
  it('the command, newest first, with the snapshots around it', async () => {
    await run('echo 1 > f; cp f g; rm g')
    const first = savepoint.snapshots().at(-1)!
    await run(': >> f; mv f g')
    const result = savepoint.why('g')
    // Also what was done to it when it was f.
    const [append, make] = [expect.stringMatching(/^sh -c :/), expect.stringMatching(/^sh -c echo/)]
    expect(commands(result)).toEqual(['mv f g', append, 'rm g', 'cp f g', make])
    expect(result.causes.map(({ name }) => name)).toEqual(['g', 'f', 'g', 'g', 'f'])
    expect(result.causes[0]!.before).toBeDefined()
    expect(result.causes[2]!.after?.id).toBe(first.id)
    expect(commands(savepoint.why('f'))).toEqual([
      'mv f g',
      expect.stringMatching(/^sh -c :/),
      expect.stringMatching(/^sh -c echo/),
    ])
  })

  it('a file in a directory that was renamed, and a name that was exchanged, are followed', async () => {
    await run('mkdir d; echo 1 > d/f; mv d e; mv e/f e/g; mkdir d; echo other > d/f')
    expect(savepoint.why('e/g').causes.map(({ event, name }) => [event.op, name])).toEqual([
      ['rename', 'e/g'],
      ['rename', 'e/f'],
      ['write', 'd/f'],
    ])
    expect(runCli(space, ['why', 'e/g']).stdout).toMatch(/^renamed from e\/f .*\n(.*\n)*renamed d → e.*\(then e\/f\)/)
  })

  it('another name of the same file: what is written through it is told, until that name is another file', async () => {
    await run('echo 1 > f; ln f g; echo 2 >> g; rm g; echo 3 > g')
    expect(savepoint.why('f').causes.map(({ event, name }) => [event.op, name])).toEqual([
      ['write', 'g'],
      ['link', 'f'],
      ['write', 'f'],
    ])
    expect(ops('g')).toEqual(['write', 'delete', 'write', 'link', 'write'])
  })

  it('another name from before everything: what is written through it is told', async () => {
    space.sh('mkdir sub; echo 1 > x; ln x sub/y; echo alone > z')
    await run('echo 2 >> sub/y; echo 3 >> z')
    expect(savepoint.why('x').causes.map(({ event, name }) => [event.op, name])).toEqual([['write', 'sub/y']])
    expect(ops('z')).toEqual(['write'])
  })

  it('a shell that was only forked counts as the shell that it came from', async () => {
    await run('(echo 1 > f); (cd /; (echo 2 > "$OLDPWD/g"))')
    expect(commands(savepoint.why('f'))).toEqual([expect.stringMatching(/^sh -c/)])
    expect(commands(savepoint.why('g'))).toEqual([expect.stringMatching(/^sh -c/)])
  })

  it('a target that is reached through a link from outside', async () => {
    symlinkSync(space.dir, join(space.base, 'link'))
    await run('echo x > ../link/f')
    expect(ops('f')).toEqual(['write'])
  })

  it('what lies outside is counted, and only what stays', async () => {
    const { trace } = await run(
      'echo 1 > ../kept; echo 2 > ../gone; rm ../gone; echo 3 > ../moved; mv ../moved in; echo > /dev/null',
    )
    expect(trace).toMatchObject({ outside: 1, removed: 0 })
    expect(ops('in')).toEqual(['rename'])
  })

  it('what was outside before and is not any more is counted, too, and said', async () => {
    space.sh('mkdir -p ../old/a/b ../into; for i in 1 2 3 4; do echo x > ../f$i; done; ln ../f4 ../other')
    const script = [
      // Deleted: three directories, a file, and one that is moved away.
      'rm -r ../old; rm ../f1; mv ../f2 in',
      // Changed: one that is replaced, one that is made and moved twice.
      'sed -i s/x/y/ ../f3; echo > ../new; mkdir ../made; mv ../new ../made; mv ../made/new ../into; rmdir ../made',
      'rm -f ../f9; ln ../f4 ../name; rm ../name',
    ].join('; ')
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', script])
    expect(stderr).toContain(
      'savepoint: 7 paths changed outside of the protected directory, 5 of them deleted: not recoverable by us\n',
    )
    expect(runCli(space, ['run', '--', 'rm', '../other']).stderr).toContain(
      'savepoint: 1 path deleted outside of the protected directory: not',
    )
  })

  it('what had no effect outside is not counted', async () => {
    // Opened to append, and nothing appended; a directory that is not empty: neither call changes anything, whoever we are.
    const { trace } = await run(
      `exec 2>/dev/null; true >> '${process.execPath}'; rmdir '${dirname(process.execPath)}'; exit 0`,
    )
    expect(trace).toMatchObject({ commands: 2, outside: 0, removed: 0 })
  })

  it('nor is the target, moved away and back', async () => {
    const { trace } = await run(`cd /; mv '${space.dir}' '${space.dir} away'; mv '${space.dir} away' '${space.dir}'`)
    expect(trace).toMatchObject({ outside: 0, removed: 0 })
  })

  gated(canDropPrivilege, 'setpriv', 'nor is what was tried where one may not go', async () => {
    space.sh('mkdir -m 0 ../closed')
    const command = ['sh', '-c', 'mkdir ../closed/x 2>/dev/null; exit 0']
    const { results } = await runAsUser(space, [['run', { command }]])
    space.sh('chmod 700 ../closed')
    expect(results[0].trace).toMatchObject({ outside: 0, removed: 0 })
  })

  it('a file that the shell opened for the whole command', async () => {
    const { status } = runCli(space, ['run', '--', 'sh', '-c', 'echo x'], {
      stdio: ['ignore', (await import('node:fs')).openSync(space.at('log'), 'w'), 'pipe'],
    })
    expect([status, ops('log')]).toEqual([0, ['inherited']])
  })

  gated(canDropPrivilege, 'setpriv', 'the same for an ordinary user', async () => {
    const { error } = await runAsUser(space, [
      ['run', { command: ['sh', '-c', 'echo 1 > f; mkdir d; mv f d/g; chmod 600 d/g'] }],
    ])
    expect(error).toBeUndefined()
    expect(commands(savepoint.why('d/g'))).toEqual(['chmod 600 d/g', 'mv f d/g', expect.stringMatching(/^sh -c echo/)])
  })

  it('the command line', async () => {
    await run('echo 1 > f; rm f')
    expect(runCli(space, ['why', 'f']).stdout).toMatch(
      /^deleted .*\n {2}by rm f \(pid \d+, run_\w+\)\n {2}before: snap_\w+.*\nopened for writing/,
    )
    const json = JSON.parse(runCli(space, ['why', 'f', '--json']).stdout)
    expect(json.causes[0]).toMatchObject({ event: { op: 'delete', path: 'f' }, command: { argv: ['rm', 'f'] } })
    expect(runCli(space, ['why', 'nothing']).stdout).toMatch(/No command of a traced run/)
  })
})

describe('a call that failed', () => {
  const outcomes = (path: string) => savepoint.why(path).causes.map(({ event, outcome }) => [event.op, outcome])

  it('on what is not there, or is there already, is not listed', async () => {
    space.sh('echo 1 > f; mkdir d')
    const script =
      'import os\nfor work in [lambda: os.unlink("none"), lambda: os.rename("none", "f"), lambda: os.link("none", "h"), lambda: os.chmod("none", 0), lambda: os.truncate("none", 0), lambda: os.mkdir("d"), lambda: os.symlink("x", "f")]:\n  try: work()\n  except OSError: pass'
    const { trace } = await savepoint.run({ command: ['python3', '-c', script] })
    expect(['none', 'f', 'h', 'd'].map(ops)).toEqual([[], [], [], []])
    expect(trace?.outside).toBe(0)
  })

  it('otherwise it is marked, by the snapshots around it', async () => {
    space.sh('mkdir full full2; echo 1 > full/f; echo 2 > full2/f; echo 3 > kept; echo 4 > changed; echo 5 > opened')
    await run(
      'exec 2>/dev/null; rmdir full; mv -T full full2; echo 6 > full; echo 7 > changed; : >> opened; echo 8 > came; rm came; true',
    )
    // Of directories that were not moved, nothing is listed.
    expect(outcomes('full')).toEqual([
      ['write', 'unchanged'],
      ['delete', 'unchanged'],
    ])
    expect(outcomes('changed')).toEqual([['write', 'changed']])
    expect(outcomes('opened')).toEqual([['write', 'unchanged']])
    expect(outcomes('came')).toEqual([
      ['delete', 'changed'],
      ['write', 'changed'],
    ])
    expect(runCli(space, ['why', 'full']).stdout).toMatch(/^opened for writing .* without effect/)
    expect(JSON.parse(runCli(space, ['why', 'opened', '--json']).stdout).causes[0].outcome).toBe('unchanged')
  })

  it('in a run that changed nothing at all', async () => {
    space.sh('mkdir full; echo 1 > full/f')
    await run('rmdir full 2>/dev/null; true')
    expect(outcomes('full')).toEqual([['delete', 'unchanged']])
  })

  it('what no snapshot has is not judged', async () => {
    space.write('.gitignore', 'ignored\n')
    space.write('ignored', '1\n')
    await run('echo 2 > ignored')
    expect(outcomes('ignored')).toEqual([['write', 'unknown']])
  })

  gated(canDropPrivilege, 'setpriv', 'for an ordinary user, of what it may not change', async () => {
    space.sh('mkdir closed; echo 1 > closed/f; chmod 555 closed; echo 2 > locked; chmod 444 locked')
    const script = 'exec 2>/dev/null; rm -f closed/f; echo 3 > closed/new; echo 4 > locked; true'
    const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', script] }]])
    expect(error).toBeUndefined()
    expect(['closed/f', 'closed/new', 'locked'].map(path => outcomes(path)[0])).toEqual([
      ['delete', 'unchanged'],
      ['write', 'unchanged'],
      ['write', 'unchanged'],
    ])
  })
})
