/** What a run executed, as it is written down and shown; what a tracer owes is in tracer-contract.test.ts. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import type { Execution, Savepoint } from '../src/index.ts'
import { compileC } from './support/c-program.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { gated, isRoot } from './support/machine.ts'
import { line, useTracedRuns } from './support/traced-runs.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
const { run, traced, find } = useTracedRuns((made, opened) => {
  space = made
  savepoint = opened
})

describe('processes whose parents are gone', () => {
  it('what lost its parents stands below the command that it came from', async () => {
    await run(
      'mkfifo f g; sh -c "(setsid sh -c \'/bin/true one; echo > f\' &) ; exit 0"; read line < f; setsid --fork sh -c "sleep 0.1; /bin/true two; echo > g"; read line < g',
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
      // Held open: what both write at once would otherwise go to the first who reads, and the second wait for ever.
      'mkfifo f; exec 3<> f; for i in 1 2; do ./daemonise sh -c "/bin/true inside; echo > f"; done; sleep 0.1; touch go; read line <&3; read line <&3',
    )
    const orphans = traced().filter(execution => line(execution).startsWith('sh -c /bin/true inside'))
    expect(orphans.map(({ parent, note }) => [parent, note])).toEqual(Array(2).fill([0, 'detached']))
    expect(runCli(space, ['trace', '--tree']).stdout).toMatch(/inside.*\[detached\]/)
  })
})

describe('what is written', () => {
  it('secrets are hidden before anything is written', async () => {
    await run('/bin/true --password hunter2hunter2 --token=ghp_0123456789abcdefghijABCDEFGHIJ012345')
    expect(traced().map(line).join()).not.toMatch(/hunter2|ghp_0123/)
    // 1: found nowhere.
    expect(spawnSync('grep', ['-r', '-e', 'hunter2', '-e', 'ghp_0123', space.home]).status).toBe(1)
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
    const refused = { exitCode: 125, hint: expect.stringMatching(/^Leave out --tracer/) }
    await expect(savepoint.run({ command: ['rm', 'a'], tracer: 'eslogger' })).rejects.toMatchObject(refused)
    const configured = await space.open({ env: { ...space.env, SAVEPOINT_TRACER: 'eslogger' } })
    const inConfig = { exitCode: 125, hint: expect.stringMatching(/^Leave tracing.tracer at auto/) }
    await expect(configured.run({ command: ['rm', 'a'] })).rejects.toMatchObject(inConfig)
    expect(space.read('a')).toBe('a1\n')
  })
})

describe('the command line', () => {
  it('words are shown as a shell reads them back, and searched as a whole', async () => {
    await run(`grep -q 'a\\.b' a; /bin/true "
" ${'x'.repeat(300)} needle; true`)
    expect(runCli(space, ['trace']).stdout).toMatch(/ {2}grep -q 'a\\\.b' a\n.* {2}\/bin\/true '\\n' x+…\n/)
    const found = runCli(space, ['trace', '--grep', '^/bin/true .* needle$']).stdout
    expect(found).toMatch(/\/bin\/true '\\n' x+…\n1 command/)
  })

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
    expect(runCli(space, ['trace', '--grep', 'nothing']).stdout).toMatch(/^No command of run_\w+ matches nothing\n$/)
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
    await vi.waitUntil(() => space.sh('grep -rs first "$SAVEPOINT_HOME"/timelines/*/runs || true') !== '', {
      timeout: 60_000,
      interval: 50,
    })
    const follower = start('trace', '--follow')
    let text = ''
    const followed = once(follower, 'exit')
    const sawFirst = Promise.withResolvers<void>()
    follower.stdout.on('data', chunk => {
      text += chunk
      if (text.includes('first')) sawFirst.resolve()
    })
    await sawFirst.promise
    // The run tells it: in /proc/net/unix its socket stands once to listen, and once for each who is connected.
    const sockets = readFileSync('/proc/net/unix', 'utf8').split('\n')
    expect(sockets.filter(each => each.endsWith(`/${savepoint.runs().at(-1)!.id}.sock`))).toHaveLength(2)
    expect(text).not.toContain('second')
    space.sh('echo > go')
    await Promise.all([liveEnded, followed])
    expect(text).toMatch(/first\n(.*\n)*.*second\n/)
  })
})
