/** What a run executed: complete, with the ends of all, whatever a process does to hide. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Execution, Savepoint } from '../src/index.ts'
import { compileC } from './support/c-program.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { gated, isRoot } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'a1\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })
const traced = (): Execution[] => savepoint.trace().executions
const line = ({ argv }: Execution) => argv.join(' ')
const find = (start: string): Execution => traced().find(execution => line(execution).startsWith(start))!

function jsonl(): Record<string, unknown>[] {
  const { id } = savepoint.runs().at(-1)!
  const file = join(space.home, 'timelines', savepoint.timeline, 'runs', id, 'exec.jsonl')
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(text => JSON.parse(text))
}

const hasStrace = spawnSync('strace', ['-V']).status === 0

describe('completeness', () => {
  gated(hasStrace, 'strace', 'a build has the same executions and exit codes as strace sees', async () => {
    for (let i = 0; i < 6; i++) space.write(`f${i}.c`, `int f${i}(void) { return ${i}; }\n`)
    space.write('main.c', 'int main(void) { return 0; }\n')
    space.write(
      'Makefile',
      'O = $(patsubst %.c,%.o,$(wildcard *.c))\np: $(O)\n\tcc -o p $(O)\n\t-./p && false\n\t-kill -TERM $$$$\n%.o: %.c\n\tcc -c -o $@ $<\n',
    )
    space.sh('strace -ff -v -s 4000 -e trace=execve -e signal=none -o ../strace make -j2 >/dev/null 2>&1; rm -f *.o p')
    await savepoint.run({ command: ['sh', '-c', 'exec make -j2 >/dev/null 2>&1'] })
    // The shell above is ours alone.
    const ours = traced().slice(1)
    expect(ours.map(({ argv }) => normal(argv.join(' '))).sort()).toEqual(straceLines().sort())
    expect(ours.filter(({ endedAt }) => endedAt === undefined)).toEqual([])
    expect(find('./p').exitCode).toBe(0)
    expect(traced().filter(({ signal }) => signal === 'SIGTERM').length).toBe(1)
  })

  /** Names of temporary files and numbers of processes differ from one time to the next. */
  const normal = (text: string) =>
    text
      .replaceAll(/\/tmp\/cc\w+/g, '/tmp/cc')
      .replaceAll(/--jobserver-\S+/g, '')
      .replaceAll(/-mtune\S+/g, '')

  function straceLines(): string[] {
    const files = readdirSync(space.base).filter(name => name.startsWith('strace.'))
    const text = files.map(name => readFileSync(join(space.base, name), 'utf8')).join('')
    return [...text.matchAll(/execve\("(?:[^"\\]|\\.)*", \[(.*?)\], .*\) = 0$/gm)].map(([, argv]) =>
      normal((JSON.parse(`[${argv}]`) as string[]).join(' ')),
    )
  }

  it('ten thousand processes in a burst: none is missing', async () => {
    compileC(
      space.at('burst'),
      `#include <spawn.h>
       #include <sys/wait.h>
       #include <stdio.h>
       extern char **environ;
       int main(void) {
         for (int i = 0; i < 10000; i++) {
           char number[16]; pid_t pid;
           snprintf(number, sizeof number, "%d", i);
           char *argv[] = {"/bin/true", number, 0};
           if (posix_spawn(&pid, argv[0], 0, 0, argv, environ) != 0) return 1;
           if (i % 8 == 7) while (waitpid(-1, 0, 0) > 0);
         }
         while (waitpid(-1, 0, 0) > 0);
         return 0;
       }`,
    )
    const { exitCode, trace } = await savepoint.run({ command: ['./burst'] })
    expect([exitCode, trace]).toEqual([0, expect.objectContaining({ commands: 10_001, failed: 0, lost: 0 })])
    const numbers = new Set(traced().map(({ argv }) => argv[1]))
    expect(numbers.size).toBe(10_001)
    expect(traced().every(({ exitCode: code, endedAt }) => code === 0 && endedAt !== undefined)).toBe(true)
  })
})

describe('what is told of each', () => {
  it('the tree, the directory, the end', async () => {
    await run('mkdir d; cd d; sh -c "ls /nothing; exit 3"; /bin/true; exit 7')
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
    await run('PATH=/nowhere:/none:$PWD/bin:$PATH; tool; ./script; exec /bin/true')
    const [shell] = traced()
    expect(find('tool')).toMatchObject({ program: space.at('bin/tool'), exitCode: 4 })
    expect(find('./script')).toMatchObject({ exitCode: 4 })
    expect(find('/bin/true')).toMatchObject({ replaces: shell!.id, exitCode: 0, pid: shell!.pid })
    expect(shell).toMatchObject({ exitCode: undefined, endedAt: find('/bin/true').at })
    expect(traced().length).toBe(4)
  })

  it('what the system refuses is no execution', async () => {
    space.write('empty', '')
    space.write('bad', '#!/no/such/interpreter\n')
    space.sh('chmod +x empty bad; mkdir directory')
    await run('./bad; ./directory; ./nothing; touch made; true')
    expect(traced().map(line)).toEqual([expect.stringMatching(/^sh -c/), 'touch made'])
  })

  it('threads that execute, vfork, static programs, execution by descriptor', async () => {
    compileC(
      space.at('odd'),
      `#define _GNU_SOURCE
       #include <pthread.h>
       #include <unistd.h>
       #include <fcntl.h>
       #include <sys/wait.h>
       #include <sys/syscall.h>
       extern char **environ;
       static void *execute(void *name) {
         char *argv[] = {"by-thread", 0};
         execv("/bin/true", argv);
         return name;
       }
       int main(void) {
         if (fork() == 0) { pthread_t t; pthread_create(&t, 0, execute, 0); pthread_join(t, 0); _exit(9); }
         char *vforked[] = {"by-vfork", 0};
         if (vfork() == 0) { execv("/bin/false", vforked); _exit(9); }
         char *described[] = {"by-descriptor", 0};
         if (fork() == 0) { int fd = open("/bin/true", O_PATH); syscall(SYS_execveat, fd, "", described, environ, AT_EMPTY_PATH); _exit(9); }
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
  })

  it('arguments that are not UTF-8, a directory that is gone, more arguments than are kept', async () => {
    await run(`printf '\\377' > name; /bin/true "$(cat name)" "
"; mkdir gone; cd gone; rmdir ../gone; /bin/true lost`)
    expect(find('/bin/true \xff').argv).toEqual(['/bin/true', '\xff', '\n'])
    expect(jsonl().find(({ argv }) => (argv as string[])?.[2] === '\n')!.argv).toEqual(['/bin/true', '\udcff', '\n'])
    expect(find('/bin/true lost').cwd).toContain('gone')
    await run('/bin/true $(seq 20000)')
    const long = find('/bin/true 1 2')
    expect([long.truncated, long.exitCode, long.argv.slice(0, 4)]).toEqual([true, 0, ['/bin/true', '1', '2', '3']])
  })

  it('T5 a daemon (setsid, twice forked) is traced until it ends, and one that goes on is said', async () => {
    await run('mkfifo f; (setsid sh -c "/bin/true in-daemon; echo > f" &) ; read line < f; touch done')
    expect(find('/bin/true in-daemon')).toMatchObject({ exitCode: 0 })
    const { trace } = await run(
      'mkfifo g; (setsid sh -c "read line < g; touch late" </dev/null >/dev/null 2>&1 &) ; sleep 0.2',
    )
    expect(trace).toMatchObject({ survivors: true })
    space.sh('echo > g; for i in $(seq 100); do [ -e late ] && exit; sleep 0.05; done; exit 1')
  })

  it('what lost its parents stands below the command that it came from', async () => {
    await run(
      'mkfifo f; sh -c "(setsid sh -c \'/bin/true one; echo > f\' &) ; exit 0"; read line < f; setsid --fork sh -c "sleep 0.1; /bin/true two; echo > f"; read line < f',
    )
    const byId = new Map(traced().map(execution => [execution.id, execution]))
    const above = (execution: Execution): string[] => {
      const parent = byId.get(execution.parent)
      return parent ? [...above(parent), parent.argv.slice(0, 2).join(' ')] : []
    }
    // The shell in between has ended before; setsid has become it, or has forked it and ended.
    expect(above(find('/bin/true one')).slice(0, 2)).toEqual(['sh -c', 'sh -c'])
    expect(above(find('/bin/true two')).slice(0, 2)).toEqual(['sh -c', 'setsid --fork'])
    expect(traced().filter(({ note, parent }) => note === 'detached' || parent === 0).length).toBe(1)
    expect(find('/bin/true two').depth).toBe(3)
  })

  it('a program that forks twice and ends, before its grandchild executes anything', async () => {
    const daemon = (wait: string) => `#include <unistd.h>
       #include <fcntl.h>
       int main(int count, char **words) {
         if (fork() != 0) return 0;
         setsid();
         if (fork() != 0) return 0;
         ${wait}
         execvp(words[1], words + 1);
         return 1;
       }`
    compileC(
      space.at('daemonise'),
      daemon('while (getppid() != 1 && access("/proc/self/cwd/go", F_OK) != 0) usleep(1000);'),
    )
    await run('mkfifo f; ./daemonise sh -c "/bin/true inside; echo > f"; sleep 0.1; touch go; read line < f')
    const daemonise = find('./daemonise')
    expect(daemonise.endedAt).toBeLessThan(find('sh -c /bin/true inside').at)
    expect(find('sh -c /bin/true inside')).toMatchObject({ parent: daemonise.id, depth: 2, note: undefined })
    // Two of the same program have ended, and which of them it was is not to be seen.
    space.sh('rm f go')
    await run(
      'mkfifo f; for i in 1 2; do ./daemonise sh -c "/bin/true inside; echo > f"; done; sleep 0.1; touch go; read line < f; read line < f',
    )
    const orphans = traced().filter(execution => line(execution).startsWith('sh -c /bin/true inside'))
    expect(orphans.map(({ parent, note }) => [parent, note])).toEqual(Array(2).fill([0, 'detached']))
    expect(runCli(space, ['trace', '--tree']).stdout).toMatch(/inside.*\[detached\]/)
  })

  it('a signal that ends a process, and exec.jsonl with all of it', async () => {
    await run('sh -c "kill -KILL \\$\\$"; sh -c "exit 5"')
    expect(find('sh -c kill')).toMatchObject({ signal: 'SIGKILL', exitCode: undefined })
    const ends = jsonl().filter(({ type }) => type === 'exit')
    expect(ends.map(({ exit_code, signal }) => [exit_code, signal])).toEqual([
      [null, 'SIGKILL'],
      [5, null],
      [5, null],
    ])
    expect(ends.every(({ duration_ms }) => (duration_ms as number) >= 0)).toBe(true)
    expect(jsonl().filter(({ type }) => type === 'exec').length).toBe(3)
  })

  it('secrets are hidden before anything is written', async () => {
    await run('/bin/true --password hunter2hunter2 --token=ghp_0123456789abcdefghijABCDEFGHIJ012345')
    expect(traced().map(line).join()).not.toMatch(/hunter2|ghp_0123/)
    // 1: found nowhere.
    expect(spawnSync('grep', ['-r', '-e', 'hunter2', '-e', 'ghp_0123', space.home]).status).toBe(1)
  })
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

describe('when something of ours dies', () => {
  it('the helper: the command goes on, changes included, and it is said', async () => {
    const { exitCode } = await run('kill -KILL $PPID; touch after; /bin/true; echo done > b')
    expect([space.read('b'), existsSync(space.at('after'))]).toEqual(['done\n', true])
    expect(space.notices.join('\n')).toMatch(/tracer was killed/)
    // Nobody could tell.
    expect(exitCode).toBe(1)
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
    space.sh(`for i in $(seq 100); do grep -q first '${file}' && exit; sleep 0.05; done; exit 1`)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    space.sh('echo > go; read line < ready')
    expect(existsSync(space.at('after'))).toBe(true)
    expect(runCli(space, ['undo']).stderr + runCli(space, ['status']).stdout).toMatch(/run_/)
    expect(existsSync(space.at('after'))).toBe(false)
  })
})

describe('what a run may do inside', () => {
  const ring = (number: number) =>
    `python3 -c "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); r = libc.syscall(${number}, 1, ctypes.create_string_buffer(256)); print('ring' if r >= 0 else os.strerror(ctypes.get_errno()))"`

  it('io_uring is refused, unless it is allowed', async () => {
    const refused = runCli(space, ['run', '--', 'sh', '-c', ring(425)])
    expect(refused.stdout).toBe('Function not implemented\n')
    const allowed = runCli(space, ['run', '--allow-io-uring', '--', 'sh', '-c', ring(425)])
    const outside = spawnSync('sh', ['-c', ring(425)], { encoding: 'utf8' })
    expect(allowed.stdout).toBe(outside.stdout)
  })

  gated(
    canDropPrivilege,
    'setpriv',
    'an ordinary user is told that sudo does not work, when a set-user-id program is tried',
    async () => {
      space.sh('cp /bin/true suid; chmod 4755 suid')
      const { error, notices } = await runAsUser(space, [['run', { command: ['sh', '-c', './suid; exit 0'] }]])
      expect(error).toBeUndefined()
      expect(notices.join('\n')).toMatch(/sudo and other set-user-id programs have no special rights.*--allow-sudo/)
      expect(notices.join('\n')).toMatch(/suid has no special rights inside this run/)
      expect(traced().map(line)).toContain('./suid')
    },
  )

  gated(isRoot, 'root', 'root keeps all rights: nothing is said', async () => {
    space.sh('cp /bin/true suid; chmod 4755 suid')
    await run('./suid')
    expect(space.notices).toEqual([])
  })

  it('gdb and strace inside work: a second tracer is not in the way', async () => {
    await run('strace -f -o out -e trace=execve sh -c /bin/true')
    expect(space.read('out')).toMatch(/execve\("\/bin\/true"/)
  })
})

describe('the tracer', () => {
  it('none: the run is protected, and nothing is traced', async () => {
    const { trace } = await savepoint.run({ command: ['sh', '-c', 'rm a'], tracer: 'none' })
    expect([trace, traced()]).toEqual([expect.objectContaining({ tracer: 'none', commands: 0 }), []])
    await savepoint.undo()
    expect(space.read('a')).toBe('a1\n')
  })

  it('one that is named and does not work here is refused before anything is started', async () => {
    await expect(savepoint.run({ command: ['rm', 'a'], tracer: 'ebpf' })).rejects.toMatchObject({ exitCode: 125 })
    expect(space.read('a')).toBe('a1\n')
  })
})

describe('the command line', () => {
  it('trace: list, tree, filters, JSON', () => {
    runCli(space, ['run', '--', 'sh', '-c', 'sh -c "/bin/false; true"; /bin/true x'])
    const list = runCli(space, ['trace'])
    expect(list.stdout).toMatch(
      /\n.* 1 {2}\/bin\/false\n(.*\n)*.* 0 {2}\/bin\/true x\n4 commands, 1 failed \(run_\w+\)\n$/,
    )
    expect(runCli(space, ['trace', '--tree']).stdout).toMatch(
      / {2}├─ sh -c .*\n.* {2}│ {2}└─ \/bin\/false\n.* {2}└─ \/bin\/true x\n/,
    )
    expect(runCli(space, ['trace', '--failed']).stdout.split('\n').length).toBe(3)
    expect(runCli(space, ['trace', '--grep', 'true x$']).stdout).toMatch(/^[^\n]*\/bin\/true x\n1 command/)
    expect(runCli(space, ['trace', '--grep', '(']).status).toBe(2)
    const { commands } = JSON.parse(runCli(space, ['trace', '--json']).stdout)
    expect(commands[2]).toMatchObject({ argv: ['/bin/false'], exit_code: 1, signal: null, parent: 2, depth: 2 })
    expect(runCli(space, ['trace', 'run_nothing']).status).toBe(12)
  })

  it('trace --follow: goes on until the run ends', async () => {
    space.sh('mkfifo go')
    const [program, ...before] = cliCommand
    const start = (...args: string[]) => spawn(program!, [...before, ...args], { cwd: space.dir, env: space.env })
    const live = start('run', '--', 'sh', '-c', '/bin/true first; read line < go; /bin/true second')
    const liveEnded = once(live, 'exit')
    space.sh(
      'for i in $(seq 200); do grep -rqs first "$SAVEPOINT_HOME"/timelines/*/runs && exit; sleep 0.05; done; exit 1',
    )
    const follower = start('trace', '--follow')
    let text = ''
    const followed = once(follower, 'exit')
    const sawFirst = Promise.withResolvers<void>()
    follower.stdout.on('data', chunk => {
      text += chunk
      if (text.includes('first')) sawFirst.resolve()
    })
    await sawFirst.promise
    expect(text).not.toContain('second')
    space.sh('echo > go')
    await Promise.all([liveEnded, followed])
    expect(text).toMatch(/first\n(.*\n)*.*second\n/)
  })
})
