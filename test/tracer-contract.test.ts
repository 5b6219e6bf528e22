/** What every tracer owes: all that a run executed, with the ends of all, whatever a process does to hide. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { rawFromText } from '../src/model/raw-path.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { compileC } from './support/c-program.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { leftRecorder } from './support/left-recorder.ts'
import { gated, isRoot } from './support/machine.ts'
import { oddPrograms } from './support/odd-program-cases.ts'
import { hasStrace, ownLines, straceLines } from './support/strace.ts'
import { line, useTracedRuns } from './support/traced-runs.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

interface Driver {
  title: string
  settings: NodeJS.ProcessEnv
  /** The first argument of a script that was found along PATH: the system keeps the path alone. */
  scriptsByPath?: boolean
  /** It needs more rights than an ordinary user has. */
  rootOnly?: boolean
  /** It sees what happens, and cannot hold it back. */
  cannotHold?: boolean
}

const drivers: Driver[] = [
  { title: 'seccomp', settings: { SAVEPOINT_TRACER: 'seccomp', SAVEPOINT_EXITS: 'pidfd' } },
  { title: 'seccomp on an older kernel', settings: { SAVEPOINT_TRACER: 'seccomp', SAVEPOINT_EXITS: 'ptrace' } },
  { title: 'ptrace', settings: { SAVEPOINT_TRACER: 'ptrace' }, scriptsByPath: true },
  { title: 'ebpf', settings: { SAVEPOINT_TRACER: 'ebpf' }, scriptsByPath: true, rootOnly: true, cannotHold: true },
]
const inNamespaces = ['--user', '--map-root-user', '--pid', '--mount', '--mount-proc', '--fork', '--kill-child']
const hasNamespaces = spawnSync('unshare', [...inNamespaces, 'true']).status === 0
const works = new Map(probeTracers().map(probe => [probe.name as string, probe]))

for (const driver of drivers) {
  const probe = works.get(driver.settings.SAVEPOINT_TRACER!)!
  const title = probe.works ? driver.title : `${driver.title} (skipped: ${probe.detail})`
  describe.skipIf(!probe.works)(title, () => contract(driver))
}

function contract({ settings, scriptsByPath, rootOnly, cannotHold }: Driver): void {
  let space: Workspace
  let savepoint: Savepoint
  const runs = useTracedRuns((made, opened) => {
    space = made
    savepoint = opened
  }, settings)
  const { run, traced, find, jsonl } = runs
  const told = (): Record<string, unknown>[] =>
    jsonl()
      .split('\n')
      .filter(Boolean)
      .map(text => JSON.parse(text))

  describe('completeness', () => {
    const build = 'exec make -j2 >/dev/null 2>&1'

    function writeProject(): void {
      for (let i = 0; i < 6; i++) space.write(`f${i}.c`, `int f${i}(void) { return ${i}; }\n`)
      space.write('main.c', 'int main(void) { return 0; }\n')
      space.write('script', '#!/bin/sh\n"$@"\nexit 3\n')
      const recipe = 'cc -o p $(O)\n\t-./p && false\n\t-kill -TERM $$$$\n\t-./script ./script /bin/false'
      space.write(
        'Makefile',
        `O = $(patsubst %.c,%.o,$(wildcard *.c))\np: $(O)\n\t${recipe}\n%.o: %.c\n\tcc -c -o $@ $<\n`,
      )
      space.sh('chmod +x script')
    }

    gated(hasStrace, 'strace', 'a build: the same executions with the same ends as strace sees', async () => {
      writeProject()
      const seen = straceLines(space, build)
      space.sh('rm -f *.o p')
      await run(build)
      expect(ownLines(traced()).sort()).toEqual(seen.sort())
      expect(seen.length).toBeGreaterThan(30)
    })

    gated(hasStrace && canDropPrivilege, 'strace, setpriv', 'a build by an ordinary user: the same', async () => {
      writeProject()
      if (rootOnly) {
        const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', build] }]])
        expect(error?.message).toMatch(/^Cannot start the command: Cannot use the tracer \w+: this needs root/)
        return
      }
      const seen = straceLines(space, build)
      space.sh('rm -f *.o p')
      const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', build] }]])
      expect(error).toBeUndefined()
      expect(ownLines(traced()).sort()).toEqual(seen.sort())
    })

    // Where the tracer does not see changes, fanotify knows the process.
    const isKnown = isRoot || settings.SAVEPOINT_TRACER === 'seccomp'
    gated(isKnown, 'root', 'events of files name the command', async () => {
      space.sh('mkfifo go')
      const ended = run('echo x > made; read line < go; exit 0')
      const made = () => savepoint.events().events.find(each => each.kind === 'file' && each.event.path === 'made')
      await vi.waitFor(() => expect(made()).toBeDefined(), { timeout: 30_000, interval: 20 })
      await writeFile(space.at('go'), '\n')
      await ended
      expect(made()).toMatchObject({ execution: { argv: ['sh', '-c', expect.stringContaining('echo x > made')] } })
    })

    // Not a container, but what one is made of; no engine that could start one is needed.
    gated(hasNamespaces, 'unshare', 'in namespaces of its own (users, processes, mounts)', async () => {
      const [program, ...before] = cliCommand
      const script = 'sh -c "exit 3"; /bin/true; kill -KILL $$'
      const args = [...inNamespaces, program!, ...before, 'run', '--', 'sh', '-c', script]
      const { status } = spawnSync('unshare', args, { cwd: space.dir, env: space.env, timeout: 60_000 })
      // What such a root may do, it may do inside alone.
      expect(status).toBe(rootOnly ? 125 : 137)
      if (rootOnly) return
      expect(ownLines(traced())).toEqual([`sh -c ${script} → SIGKILL`, 'sh -c exit 3 → 3', '/bin/true → 0'])
    })

    it('ten thousand processes in a burst: none is missing', async () => {
      compileC(
        space.at('burst'),
        `#include <spawn.h>
         #include <sys/wait.h>
         #include <stdio.h>
         extern char **environ;
         int main(int count, char **words) {
           if (count > 1) return 0;
           for (int i = 0; i < 10000; i++) {
             char number[16]; pid_t pid;
             snprintf(number, sizeof number, "%d", i);
             char *argv[] = {words[0], number, 0};
             if (posix_spawn(&pid, argv[0], 0, 0, argv, environ) != 0) return 1;
             if (i % 8 == 7) while (waitpid(-1, 0, 0) > 0);
           }
           while (waitpid(-1, 0, 0) > 0);
           return 0;
         }`,
        // Most of the time of a short process is its loading.
        '-static',
      )
      const { exitCode, trace } = await savepoint.run({ command: ['./burst'] })
      expect([exitCode, trace]).toEqual([0, expect.objectContaining({ commands: 10_001, failed: 0, lost: 0 })])
      const executions = traced()
      expect(new Set(executions.map(({ argv }) => argv[1])).size).toBe(10_001)
      expect(executions.every(({ exitCode: code, endedAt }) => code === 0 && endedAt !== undefined)).toBe(true)
    })
  })

  describe('what is told of each', () => {
    it('the tree, the directory, the end', async () => {
      await run('exec 2>/dev/null; mkdir d; cd d; sh -c "ls /nothing; exit 3"; /bin/true; exit 7')
      const [shell] = traced()
      expect(shell).toMatchObject({ id: 1, parent: 0, depth: 0, exitCode: 7, cwd: space.dir })
      const inner = find('sh -c ls')
      expect(inner).toMatchObject({ parent: 1, depth: 1, exitCode: 3, cwd: space.at('d') })
      expect(find('ls /nothing')).toMatchObject({ parent: inner.id, depth: 2, exitCode: 2, ppid: inner.pid })
      expect(find('/bin/true')).toMatchObject({ parent: 1, exitCode: 0 })
    })

    it('a process that becomes another program, a script, a search along PATH', async () => {
      space.write('script', '#!/bin/sh\nexit 4\n')
      space.sh('chmod +x script; mkdir bin; cp script bin/tool')
      await run('PATH=/nowhere:/none:$PWD/bin:$PATH; tool x; ./script; exec /bin/true')
      const [shell] = traced()
      const tool = scriptsByPath ? space.at('bin/tool') : 'tool'
      expect(find(tool)).toMatchObject({ program: space.at('bin/tool'), exitCode: 4, argv: [tool, 'x'] })
      expect(find('./script')).toMatchObject({ program: space.at('script'), argv: ['./script'], exitCode: 4 })
      expect(find('/bin/true')).toMatchObject({ replaces: shell!.id, exitCode: 0, pid: shell!.pid })
      expect(shell).toMatchObject({ exitCode: undefined, endedAt: find('/bin/true').at })
      expect(traced().length).toBe(4)
    })

    it('a script whose interpreter is a script, with an argument', async () => {
      space.write('inner', '#!/bin/sh -e\nexit 6\n')
      space.write('outer', `#!${space.at('inner')} -x\n`)
      space.sh('chmod +x inner outer')
      await run('./outer one two; true')
      expect(find('./outer')).toMatchObject({ argv: ['./outer', 'one', 'two'], exitCode: 6 })
    })

    if (!rootOnly)
      gated(
        canDropPrivilege,
        'setpriv',
        'by an ordinary user: a program that may not be read, one with rights',
        async () => {
          space.sh('cp /bin/true unreadable; chmod 111 unreadable; cp /bin/true suid; chmod 4755 suid')
          const command = ['sh', '-c', './unreadable one; ./suid; exit 0']
          const { error, notices } = await runAsUser(space, [['run', { command }]])
          expect(error).toBeUndefined()
          expect(find('./unreadable')).toMatchObject({ argv: ['./unreadable', 'one'], parent: 1, exitCode: 0 })
          expect(find('./suid')).toMatchObject({ program: space.at('suid'), exitCode: 0 })
          expect(notices.join('\n')).toMatch(/sudo and other set-user-id programs have no special rights/)
          expect(notices.join('\n')).toMatch(/suid has no special rights inside this run/)
        },
      )

    it('what the system refuses is no execution', async () => {
      space.write('empty', '')
      space.write('bad', '#!/no/such/interpreter\n')
      space.sh('chmod +x empty bad; mkdir directory')
      await run('exec 2>/dev/null; ./bad; ./directory; ./nothing; touch made; true')
      expect(traced().map(line)).toEqual([expect.stringMatching(/^sh -c/), 'touch made'])
    })

    it('threads that execute, vfork, static programs, execution by descriptor, a first thread that ends first', async () => {
      compileC(
        space.at('odd'),
        `#define _GNU_SOURCE
         #include <pthread.h>
         #include <unistd.h>
         #include <fcntl.h>
         #include <stdlib.h>
         #include <string.h>
         #include <sys/wait.h>
         #include <sys/syscall.h>
         extern char **environ;
         static void *execute(void *name) {
           char *argv[] = {"by-thread", 0};
           execv("/bin/true", argv);
           return name;
         }
         static pthread_t first;
         static void *outlive(void *code) {
           pthread_join(first, 0);
           exit(23);
           return code;
         }
         int main(int count, char **arguments) {
           if (count > 1) {
             pthread_t t;
             first = pthread_self();
             pthread_create(&t, 0, outlive, 0);
             pthread_exit(0);
           }
           if (fork() == 0) { pthread_t t; pthread_create(&t, 0, execute, 0); pthread_join(t, 0); _exit(9); }
           char *vforked[] = {"by-vfork", 0};
           if (vfork() == 0) { execv("/bin/false", vforked); _exit(9); }
           char *described[] = {"by-descriptor", 0};
           if (fork() == 0) { int fd = open("/bin/true", O_PATH | O_CLOEXEC); syscall(SYS_execveat, fd, "", described, environ, AT_EMPTY_PATH); _exit(9); }
           char *outliving[] = {"outliving", "x", 0};
           if (fork() == 0) { execv(arguments[0], outliving); _exit(9); }
           while (wait(0) > 0);
           return 0;
         }`,
        '-static',
      )
      await savepoint.run({ command: ['./odd'] })
      const parent = traced()[0]!.id
      expect(find('by-thread')).toMatchObject({ parent, exitCode: 0 })
      expect(find('by-vfork')).toMatchObject({ parent, exitCode: 1 })
      expect(find('by-descriptor')).toMatchObject({ parent, exitCode: 0 })
      expect(find('outliving x')).toMatchObject({ parent, exitCode: 23 })
      expect(traced().length).toBe(5)
    })

    it('a thread executes, or tries to, while others beside it change files until they are ended for it', async () => {
      compileC(
        space.at('beside'),
        `#define _GNU_SOURCE
         #include <pthread.h>
         #include <unistd.h>
         #include <fcntl.h>
         #include <stdlib.h>
         #include <string.h>
         #include <sys/wait.h>
         static void change(const char *name) { close(open(name, O_CREAT | O_WRONLY, 0600)); }
         static void *busy(void *x) { for (;;) change("busy"); return x; }
         static void *refused(void *x) {
           char *argv[] = {"refused", calloc(1, 1 << 20), 0};
           memset(argv[1], 'x', (1 << 20) - 1);
           execv("/bin/true", argv);
           return x;
         }
         static void *execute(void *x) {
           char *argv[] = {"sh", "-c", "echo > made; exit 6", 0};
           execv("/bin/sh", argv);
           return x;
         }
         int main(void) {
           for (int i = 0; i < 5; i++) {
             if (fork() == 0) {
               pthread_t t;
               for (int j = 0; j < 2; j++) pthread_create(&t, 0, busy, 0);
               pthread_create(&t, 0, refused, 0);
               pthread_join(t, 0);
               change("after");
               pthread_create(&t, 0, execute, 0);
               pause();
             }
             wait(0);
           }
           return 0;
         }`,
        '-static',
      )
      await savepoint.run({ command: ['./beside'] })
      const ends = traced().map(each => `${line(each)} → ${each.exitCode}`)
      expect(ends).toEqual(['./beside → 0', ...Array(5).fill('sh -c echo > made; exit 6 → 6')])
      if (settings.SAVEPOINT_TRACER !== 'seccomp') return
      const byWhom = (path: string) =>
        new Set(
          savepoint
            .events()
            .events.flatMap(each =>
              each.kind === 'file' && each.event.path === path && each.execution ? [line(each.execution)] : [],
            ),
        )
      expect(byWhom('busy')).toEqual(new Set(['./beside']))
      expect(byWhom('made')).toEqual(new Set(['sh -c echo > made; exit 6']))
    })

    it('arguments that are not UTF-8, a directory that is gone, more arguments than are kept', async () => {
      await run(`printf '\\377' > name; /bin/true "$(cat name)" "
"; mkdir gone; cd gone; rmdir ../gone; /bin/true lost`)
      expect(find('/bin/true \xff').argv).toEqual(['/bin/true', '\xff', '\n'])
      expect(told().find(({ argv }) => (argv as string[])?.[2] === '\n')!.argv).toEqual(['/bin/true', '\udcff', '\n'])
      expect(find('/bin/true lost').cwd).toContain('gone')
      await run('/bin/true $(seq 20000)')
      const long = find('/bin/true 1 2')
      expect([long.truncated, long.exitCode, long.argv.slice(0, 4)]).toEqual([true, 0, ['/bin/true', '1', '2', '3']])
      await run(`/bin/true ${'x'.repeat(40_000)}; true`)
      const wide = find('/bin/true xxx')
      expect([wide.truncated, wide.exitCode, wide.argv.length]).toEqual([true, 0, 2])
    })

    it('T5 a daemon (setsid, twice forked) is traced until it ends, and one that goes on is said', async () => {
      await run('mkfifo f; (setsid sh -c "/bin/true in-daemon; echo > f" &) ; read line < f; touch done')
      expect(find('/bin/true in-daemon')).toMatchObject({ exitCode: 0 })
      const { run: daemonised, trace } = await run(
        'mkfifo g up; (setsid sh -c "echo > up; read line < g; touch late" </dev/null >/dev/null 2>&1 &) ; read line < up',
      )
      expect(trace).toMatchObject({ survivors: true, running: [{ pid: expect.any(Number), name: 'sh' }] })
      expect(runCli(space, ['trace']).stdout).toMatch(/ outlived {2}sh -c 'echo > up; read line < g; touch late'\n/)
      // Who records what goes on: without it that goes on all the same.
      const recorder = await leftRecorder(space.home, daemonised!.id)
      process.kill(Number(recorder), 'SIGKILL')
      await vi.waitUntil(() => !existsSync(`/proc/${recorder}`), { timeout: 60_000 })
      space.sh('echo > g')
      await vi.waitUntil(() => existsSync(space.at('late')), { timeout: 60_000 })
      expect(runCli(space, ['trace']).stderr).toMatch(
        /left running is not traced to its end.*: who recorded it was killed/,
      )
    })

    it('T5 what goes on is traced until it ends, although nobody waits for it, and only then nothing of ours is left', async () => {
      const script =
        'echo > up; read line < g; ./secret --password=hunter2 && rm -rf gone; sh -c "kill -TERM \\$\\$"; exit 4'
      space.write('gone')
      space.write('secret', '#!/bin/sh\n')
      space.sh('chmod +x secret; mkfifo g up')
      await run(`(setsid sh -c '${script}' </dev/null >/dev/null 2>&1 &) ; read line < up`)
      const recorder = await leftRecorder(space.home)
      const { stderr } = runCli(space, ['purge', '--text', 'exit 4', '--yes'])
      expect(stderr).toMatch(/what run_\w+ left running is still traced, and may come in with it: purge again/)
      space.sh('echo > g')
      await vi.waitUntil(() => !existsSync(`/proc/${recorder}`), { timeout: 60_000 })
      const after = savepoint.trace().executions.filter(({ note }) => note?.includes('after the run'))
      expect(ownLines(after)).toEqual([
        `./secret --password=${rawFromText('‹redacted›')} → 0`,
        'rm -rf gone → 0',
        'sh -c kill -TERM $$ → SIGTERM',
      ])
      expect(find(`sh -c ${script.slice(0, 10)}`)).toMatchObject({ exitCode: 4, note: undefined })
      expect(told().filter(({ type }) => type === 'exec').length).toBe(savepoint.trace().executions.length)
      expect(told().at(-1)).toMatchObject({ type: 'exit', exit_code: 4 })
      expect(jsonl()).not.toContain('hunter2')
      expect(existsSync(space.at('gone'))).toBe(false)
    })

    it('T5 a daemon that executes nothing is named as well; and one whose first thread has ended', async () => {
      compileC(
        space.at('daemon'),
        `#include <fcntl.h>
         #include <pthread.h>
         #include <unistd.h>
         static pthread_t first;
         static void *wait_for_go(void *name) {
           pthread_join(first, 0);
           char byte;
           close(open("up", O_WRONLY));
           if (read(open("go", O_RDONLY), &byte, 1) > 0) close(open(name, O_CREAT | O_WRONLY, 0600));
           return 0;
         }
         int main(int count, char **words) {
           pthread_t thread;
           if (fork() != 0) { read(open("up", O_RDONLY), &count, 1); return 0; }
           setsid();
           alarm(120); /* should the test fail */
           for (int fd = 0; fd < 3; fd++) close(fd);
           first = pthread_self();
           pthread_create(&thread, 0, wait_for_go, "late");
           pthread_exit(0);
         }`,
        '-static',
      )
      space.sh('mkfifo go up')
      const { stderr } = runCli(space, ['run', '--', './daemon'])
      const [, pid, again] = / daemon \((\d+)\) of this run goes on: .* kill (\d+)\n/.exec(stderr)!
      expect(again).toBe(pid)
      expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('daemon\n')
      await writeFile(space.at('go'), 'x')
      await vi.waitUntil(() => existsSync(space.at('late')), { timeout: 60_000 })
    })

    it('a signal that ends a process, one that is caught, and exec.jsonl with all of it', async () => {
      await run(
        'exec 2>/dev/null; sh -c "kill -KILL \\$\\$"; sh -c "trap \\"exit 6\\" USR1; kill -USR1 \\$\\$"; sh -c "exit 5"',
      )
      expect(find('sh -c kill')).toMatchObject({ signal: 'SIGKILL', exitCode: undefined })
      const ends = told().filter(({ type }) => type === 'exit')
      expect(ends.map(({ exit_code, signal }) => [exit_code, signal])).toEqual([
        [null, 'SIGKILL'],
        [6, null],
        [5, null],
        [5, null],
      ])
      expect(ends.every(({ duration_ms }) => (duration_ms as number) >= 0)).toBe(true)
      expect(told().filter(({ type }) => type === 'exec').length).toBe(4)
    })
  })

  describe('programs that are no file at a path', () =>
    oddPrograms({
      runs,
      now: () => ({ space, savepoint }),
      cannotHold: cannotHold ?? false,
      rootOnly: rootOnly ?? false,
      isSeccomp: settings.SAVEPOINT_TRACER === 'seccomp',
    }))

  describe('what a process does not notice', () => {
    it('job control inside: a parent sees its child stop, go on and end', async () => {
      space.write(
        'parent.py',
        `import os, signal
pid = os.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', 'kill -STOP $$; exit 8'])
_, stopped = os.waitpid(pid, os.WUNTRACED)
os.kill(pid, signal.SIGCONT)
_, continued = os.waitpid(pid, os.WCONTINUED)
_, ended = os.waitpid(pid, 0) if os.WIFCONTINUED(continued) else (0, continued)
print(os.WSTOPSIG(stopped) == signal.SIGSTOP, os.WEXITSTATUS(ended), file=open('seen', 'w'))
`,
      )
      await savepoint.run({ command: ['python3', 'parent.py'] })
      expect(space.read('seen')).toBe('True 8\n')
      expect(find('sh -c kill')).toMatchObject({ exitCode: 8 })
    })

    it('a guarded command waits for its snapshot, and goes on', async () => {
      const { exitCode } = await run('echo new > b; rm -rf b; [ ! -e b ]')
      expect(exitCode).toBe(0)
      const guard = savepoint.snapshots().find(({ type }) => type === 'guard')
      const said = space.notices.join('\n')
      if (cannotHold) {
        expect([guard, said]).toEqual([undefined, expect.stringMatching(/cannot hold a destructive command/)])
        return
      }
      expect(said).not.toMatch(/cannot hold/)
      expect(savepoint.read(guard!.id, 'b').toString()).toBe('new\n')
    })

    it('git that finds its repository by variables alone is guarded, too', async () => {
      space.sh('git init -q .; git add -A; git commit -qm one')
      await run('echo edit > a; D=$PWD; cd /; GIT_DIR="$D/.git" GIT_WORK_TREE="$D" git reset -q --hard')
      expect(space.read('a')).toBe('a1\n')
      const guard = savepoint.snapshots().find(({ type }) => type === 'guard')
      if (cannotHold) expect(guard).toBeUndefined()
      else expect(savepoint.read(guard!.id, 'a').toString()).toBe('edit\n')
    })

    it('the command itself may be one that is held', async () => {
      const { exitCode } = await savepoint.run({ command: ['rm', '-rf', 'a'] })
      expect([exitCode, space.read('a'), traced().map(line)]).toEqual([0, undefined, ['rm -rf a']])
      await expect(savepoint.run({ command: ['./rm'] })).rejects.toMatchObject({ exitCode: 127 })
    })

    it('our own processes are not found by the names of what they hold', async () => {
      const { exitCode } = await run('pkill -f "docke[r],podman"; pkill -f "hol[d] rm"; exit 4')
      expect(exitCode).toBe(4)
    })
  })

  it('nothing is left to us: no process of ours, and none that outlives the run', async () => {
    const list = () => spawnSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,comm='], { encoding: 'utf8' }).stdout
    // What a helper leaves behind that was killed, by another test, is ours until we end.
    const before = new Set(list().split('\n'))
    const children = () =>
      list()
        .split('\n')
        .filter(each => !before.has(each) && !each.endsWith(' ps'))
    const daemon = 'setsid sh -c "echo > up; exec 3< f; read line <&3; touch over"'
    await run(`mkfifo f up; (${daemon} </dev/null >/dev/null 2>&1 &); read line < up`)
    await vi.waitUntil(() => !children().some(each => each.endsWith(' sh')), { timeout: 60_000 })
    space.sh('echo > f')
    await vi.waitUntil(() => existsSync(space.at('over')) && children().length === 0, { timeout: 60_000 })
  })

  describe('when something of ours dies', () => {
    it.each([
      ['exit 9', { exitCode: 9, signal: undefined }],
      ['kill -TERM $$', { exitCode: 143, signal: 'SIGTERM' }],
    ])('the helper: the command goes on, and how it ended is known (%s)', async (last, end) => {
      const result = await run(`kill -KILL $PPID; touch after; /bin/true; echo done > b; ${last}`)
      expect([space.read('b'), existsSync(space.at('after'))]).toEqual(['done\n', true])
      expect(space.notices.join('\n')).toMatch(/tracer was killed/)
      expect(result).toMatchObject(end)
      expect((await savepoint.undo()).restore?.files.deleted).toBe(2)
    })

    it('our process: the command goes on, and exec.jsonl has what was told until then', async () => {
      space.sh('mkfifo ready go')
      const [program, ...before] = cliCommand
      const script = '/bin/true first; echo > ready; read line < go; touch after; /bin/true second; echo > ready'
      const child = spawn(program!, [...before, 'run', '--', 'sh', '-c', script], { cwd: space.dir, env: space.env })
      space.sh('read line < ready')
      // What comes after that word is not waited for.
      const directory = join(space.home, 'timelines', savepoint.timeline, 'runs')
      const file = join(directory, readdirSync(directory)[0]!, 'exec.jsonl')
      await vi.waitUntil(() => readFileSync(file, 'utf8').includes('first'), { timeout: 60_000 })
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      space.sh('echo > go; read line < ready')
      expect(existsSync(space.at('after'))).toBe(true)
      expect(runCli(space, ['undo']).stderr + runCli(space, ['status']).stdout).toMatch(/run_/)
      expect(existsSync(space.at('after'))).toBe(false)
    })
  })
}
