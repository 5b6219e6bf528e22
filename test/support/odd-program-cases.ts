/** Programs that are not simply a file at a path: in memory alone, deleted, at too long a path, or handed to another by the system. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import type { Execution, Savepoint } from '../../src/index.ts'
import { compileC } from './c-program.ts'
import { cliCommand } from './cli.ts'
import { gated } from './machine.ts'
import { line, type TracedRuns } from './traced-runs.ts'
import type { Workspace } from './workspace.ts'

export interface OddProgramsScene {
  runs: TracedRuns
  /** Those of the test. */
  now(): { space: Workspace; savepoint: Savepoint }
  cannotHold: boolean
  isSeccomp: boolean
  rootOnly: boolean
}

/** Executes a copy in memory of its second argument, with the arguments from there on: by its descriptor, or by the path of that. */
const IN_MEMORY = `
  #define _GNU_SOURCE
  #include <fcntl.h>
  #include <stdio.h>
  #include <string.h>
  #include <sys/mman.h>
  #include <sys/sendfile.h>
  #include <sys/syscall.h>
  #include <unistd.h>
  extern char **environ;
  int main(int count, char **words) {
    char path[64];
    int from = open(words[2], O_RDONLY), to = memfd_create("copy", MFD_CLOEXEC);
    while (count > 2 && sendfile(to, from, 0, 1 << 20) > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", to);
    if (strcmp(words[1], "path") == 0) execve(path, words + 2, environ);
    else syscall(SYS_execveat, to, "", words + 2, environ, AT_EMPTY_PATH);
    return 99;
  }`

/** Becomes itself again when its file is gone. */
const DELETED = `
  #include <unistd.h>
  int main(int count, char **words) {
    char *again[] = {"again", "x", 0};
    if (count > 1) return 7;
    unlink(words[0]);
    execv("/proc/self/exe", again);
    return 99;
  }`

/** At the end of a path that no call could take as a whole; what it has made goes again. */
const DEEP = `import os, subprocess
top, part = os.getcwd(), 'd' * 200
for _ in range(25):
    os.mkdir(part)
    os.chdir(part)
subprocess.run(['cp', '/bin/true', 'prog'], check=True)
status = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn('./prog', ['./prog', 'deep'], os.environ), 0)[1])
os.unlink('prog')
for _ in range(25):
    os.chdir('..')
    os.rmdir(part)
raise SystemExit(status)
`

const ownNamespaces = ['--user', '--map-root-user', '--mount']
const MOUNT = 'mount -t binfmt_misc none /proc/sys/fs/binfmt_misc'
/** Since Linux 6.7 each user namespace has rules of its own, so that nothing on this machine changes. */
const hasRules = spawnSync('unshare', [...ownNamespaces, 'sh', '-c', MOUNT]).status === 0

export function oddPrograms({ runs, now, cannotHold, rootOnly, isSeccomp }: OddProgramsScene): void {
  const { run, traced, find } = runs

  it('a program that is in memory alone: by its descriptor, by the path of that', async () => {
    const { space } = now()
    compileC(space.at('memory'), IN_MEMORY)
    const { trace } = await run(
      './memory descriptor /bin/sh -c "exit 5"; ./memory path /bin/sh -c "exit 6"; exec ./memory path /bin/true',
    )
    const [shell] = traced()
    expect(find('/bin/sh -c exit 5')).toMatchObject({ parent: shell!.id, exitCode: 5 })
    expect(find('/bin/sh -c exit 6')).toMatchObject({ parent: shell!.id, exitCode: 6 })
    expect(find('/bin/true')).toMatchObject({ exitCode: 0, pid: shell!.pid })
    expect(
      traced()
        .filter(({ argv }) => argv[0]!.startsWith('/bin/'))
        .map(programOf),
    ).toEqual(Array(3).fill('/memfd:copy'))
    expect(trace).toMatchObject({ commands: 7, lost: 0 })
  })

  it('what such a program destroys is guarded', async () => {
    const { space, savepoint } = now()
    compileC(space.at('memory'), IN_MEMORY)
    const { exitCode } = await run('mkdir d; echo new > d/b; ./memory descriptor /bin/rm -rf d; [ ! -e d ]')
    expect([exitCode, find('/bin/rm -rf d').exitCode]).toEqual([0, 0])
    const guard = savepoint.snapshots().find(({ type }) => type === 'guard')
    if (cannotHold) expect(guard).toBeUndefined()
    else expect(savepoint.read(guard!.id, 'd/b').toString()).toBe('new\n')
  })

  it('a program that becomes itself again after its file was deleted', async () => {
    const { space } = now()
    compileC(space.at('self'), DELETED)
    const { trace } = await run('./self; exit 0')
    const [first, again] = [find('./self'), find('again x')]
    expect(again).toMatchObject({ replaces: first.id, pid: first.pid, exitCode: 7 })
    expect(programOf(again)).toBe(space.at('self'))
    expect(trace).toMatchObject({ commands: 3, lost: 0 })
  })

  it('a program at a path that is longer than the system takes', async () => {
    const { space, savepoint } = now()
    space.write('deep.py', DEEP)
    try {
      const { exitCode, trace } = await savepoint.run({ command: ['python3', 'deep.py'] })
      expect([exitCode, trace?.lost]).toEqual([0, 0])
    } finally {
      space.sh(`rm -rf ${'d'.repeat(200)}`)
    }
    expect(find('./prog deep')).toMatchObject({ exitCode: 0, program: expect.stringMatching(/(^|\/)prog$/) })
  })

  // What asks for root's rights does not work there.
  if (rootOnly) return
  const needs = 'a kernel with binfmt_misc for each user'
  const [ending, bytes] = ['./text.spend one → 0', './binary two → 0']
  /** Without what some shells execute to read a script themselves. */
  const toldOfScript = () =>
    traced()
      .slice(1)
      .filter(({ argv }) => argv[0] !== '/bin/sh')
      .map(lineAndEnd)
  gated(hasRules, needs, 'what the system hands to another program, by its ending or its first bytes', () => {
    runByRules(now().space)
    expect(toldOfScript()).toEqual([ending, bytes])
  })

  gated(hasRules, needs, 'the same by rules that we do not see', () => {
    runByRules(now().space, 'unshare --mount sh -ec \'umount /proc/sys/fs/binfmt_misc; exec "$@"\' sh')
    // Text is not waited for (docs/tracing.md).
    expect(toldOfScript()).toEqual(isSeccomp ? [bytes] : [ending, bytes])
  })
}

const programOf = (execution: Execution): string => execution.program
const lineAndEnd = (execution: Execution): string => `${line(execution)} → ${execution.exitCode}`

/** Where two rules hold, as long as they are mounted somewhere. `within`: by which command. */
function runByRules(space: Workspace, within = ''): void {
  space.write('text.spend', 'no script\n')
  space.write('plain', 'exit 3\n')
  space.write('handler', '#!/bin/sh\n: > "$1.handled"\n')
  space.sh(
    "printf '\\0sp and more' > binary; printf '\\0other' > neither; chmod +x text.spend plain handler binary neither",
  )
  const rules = ['ending:E::spend:', 'bytes:M::\\x00sp:'].map(rule => `:savepoint-${rule}:${space.at('handler')}:`)
  const register = rules.map(rule => `echo '${rule}' > /proc/sys/fs/binfmt_misc/register`)
  const inside = [MOUNT, ...register, `${within} "$@"`, 'true'].join('; ')
  const script = './text.spend one; ./plain; ./neither; ./binary two; exit 0'
  const command = ['bash', '-ec', inside, 'bash', ...cliCommand, 'run', '--', 'sh', '-c', script]
  const { status, stderr } = spawnSync('unshare', [...ownNamespaces, ...command], {
    cwd: space.dir,
    env: space.env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(status, stderr).toBe(0)
  expect(stderr).not.toMatch(/holes/)
  expect([space.read('text.spend.handled'), space.read('binary.handled')]).toEqual(['', ''])
}
