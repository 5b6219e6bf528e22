/** Files go back while an agent is at work: it is stopped, held still, or started again, as asked. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { isRunning, startRun, useRuns } from './support/background-run.ts'
import {
  asOrdinaryUser,
  builtCommand,
  giveToUser,
  savepoint,
  savepointAsUser,
  savepointJson,
} from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { isRoot } from './support/machine.ts'
import { hasTerminal, onTerminal } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

const TERM_EXIT = 143

let space: Workspace
useRuns(made => {
  space = made
})

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${Number(pid)}/environ`, 'latin1')
  } catch {
    return ''
  }
}

const first = () => savepointJson(space, ['snapshot', '-m', 'good']).id as string
const pids = (path: string) => space.read(path)!.trim().split('\n').map(Number)

it('HEAD is what it was when that was asked for, not the end of the run that is stopped', async () => {
  const run = await startRun(space, 'printf a2 > a; READY; read x')
  const { stdout } = savepoint(space, ['rollback', 'HEAD'])
  await run.ended
  expect([space.read('a'), stdout]).toEqual(['a1', expect.stringContaining('1 replaced')])
})

describe.each(['auto', 'ptrace', 'none'])('tracer %s', tracer => {
  const args = ['--tracer', tracer]

  it('a rollback stops all processes of the run, also those that left it or do not want to, and then goes back', async () => {
    const good = first()
    const script = `printf a2 > a
      setsid sh -c 'echo $$ >> pids; exec sleep 300' &
      sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.05; done' &
      while [ "$(wc -l < pids 2>/dev/null)" != 2 ]; do sleep 0.01; done
      READY; wait`
    const run = await startRun(space, script, { args })
    const processes = pids('pids')
    const { status, stdout, stderr } = savepoint(space, ['rollback', 'good'])
    expect({ status, stdout, stderr }).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`Rolled back to ${good}`),
      stderr: expect.stringMatching(new RegExp(`^savepoint: stopped ${run.id} \\(sh -c .*\\)\\n$`)),
    })
    expect([space.read('a'), space.read('pids')]).toEqual(['a1', undefined])
    for (const pid of processes) expect(await isRunning(pid)).toBe(false)
    const end = await run.ended
    expect(end.signal).toBe('SIGTERM')
    expect(end.stderr).toContain('the run was stopped for `savepoint rollback good`')
    expect(end.stderr).not.toContain('To undo')
    // First the rollback, then the run: each is a step of its own.
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('a')).toBe('a2')
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('a')).toBe('a1')
  })

  it('an agent that tidies up when it is told to stop has the time, and that is part of its run', async () => {
    const good = first()
    const run = await startRun(space, 'trap "printf saved > late; exit 7" TERM; READY; while :; do sleep 0.02; done', {
      args,
    })
    expect(savepoint(space, ['rollback', good]).status).toBe(0)
    expect((await run.ended).status).toBe(7)
    expect(space.read('late')).toBeUndefined()
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('late')).toBe('saved')
  })

  it('--keep-running: it goes on, on the files of then', async () => {
    first()
    const run = await startRun(space, 'printf a2 > a; READY; read line; cat a; echo " $line"', { args })
    const { status, stderr } = savepoint(space, ['rollback', 'good', '--keep-running'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    run.say('on it goes')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a1 on it goes') })
  })

  it('one that starts processes without end is stopped as a whole', async () => {
    first()
    const script = `i=0; READY
      while :; do (sleep 0.02; echo >> log) & i=$((i + 1)); [ $((i % 40)) != 0 ] || wait; done`
    const run = await startRun(space, script, { args })
    expect(savepoint(space, ['rollback', 'good']).status).toBe(0)
    const left = readdirSync('/proc').filter(pid => environmentOf(pid).includes(`SAVEPOINT_RUN=${run.id}`))
    expect(left).toEqual([])
    expect(space.read('log')).toBeUndefined()
    await run.ended
  })

  it('undo from outside stops the run and takes it back', async () => {
    const run = await startRun(space, 'printf a2 > a; READY; sleep 300', { args })
    const { status, stdout, stderr } = savepoint(space, ['undo'])
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${run.id}`) })
    expect(stdout).toContain(`Undone: ${run.id}`)
    expect(space.read('a')).toBe('a1')
    await run.ended
    expect(savepoint(space, ['redo']).status).toBe(0)
    expect(space.read('a')).toBe('a2')
  })
})

it('a process whose first thread has ended is stopped as well', async () => {
  compileC(
    space.at('headless'),
    `#include <fcntl.h>
     #include <pthread.h>
     #include <stdio.h>
     #include <unistd.h>
     static pthread_t first;
     static void *work(void *none) {
       pthread_join(first, 0);
       FILE *file = fopen("headless.pid", "w");
       fprintf(file, "%d\\n", getpid());
       fclose(file);
       alarm(300);
       for (;;) pause();
       return none;
     }
     int main(void) {
       pthread_t thread;
       first = pthread_self();
       pthread_create(&thread, 0, work, 0);
       pthread_exit(0);
     }`,
  )
  first()
  const run = await startRun(space, './headless & while [ ! -s headless.pid ]; do sleep 0.01; done; READY; wait')
  const [pid] = pids('headless.pid')
  expect(savepoint(space, ['rollback', 'good']).status).toBe(0)
  expect(existsSync(`/proc/${pid}`)).toBe(false)
  expect((await run.ended).signal).toBe('SIGTERM')
})

it('when the supervisor dies while it holds the agent still, the agent goes on, and the next command completes', async () => {
  first()
  const env = { ...space.env, SAVEPOINT_FAILPOINT: 'restore:journal' }
  const run = await startRun(space, 'printf a2 > a; READY; read x; echo went on > ../on', { spawn: { env } })
  const { status, stderr } = savepoint(space, ['rollback', 'good', '--keep-running'])
  expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('Cannot tell what became of') })
  expect(run.child.signalCode ?? (await run.ended).signal).toBe('SIGKILL')
  run.say('')
  await vi.waitUntil(() => existsSync(join(space.base, 'on')), { timeout: 60_000 })
  expect(savepoint(space, ['status']).stderr).toContain('completed a rollback that was interrupted')
  expect(space.read('a')).toBe('a1')
})

it('undo --keep-running does not reach for what was done before the run', async () => {
  first()
  space.write('a', 'edited')
  expect(savepoint(space, ['rollback', 'good']).status).toBe(0)
  const run = await startRun(space, 'printf a2 > b; READY; read line')
  expect(savepoint(space, ['undo', '--keep-running'])).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(
      /Cannot undo: run_\w+ is still going\n.*; `savepoint undo` stops it and takes it back/,
    ),
  })
  expect([space.read('a'), space.read('b')]).toEqual(['a1', 'a2'])
  run.say('')
  expect(await run.ended).toMatchObject({ status: 0 })
})

it('what is done beside a live run says how to undo that, and not the run', async () => {
  first()
  const cli = builtCommand.map(word => `'${word}'`).join(' ')
  const script = `printf a2 > a; READY; read line; ${cli} status; ${cli} tag inner good; ${cli} undo; echo "still $line"`
  const run = await startRun(space, script.replace('READY', `${cli} snapshot -m own; READY`))
  const hint = 'To undo: savepoint undo --keep-running\n'
  for (const args of [
    ['rollback', 'good', '--keep-running'],
    ['revert', 'a', '--from', 'own'],
    ['tag', 'then', 'good'],
  ]) {
    expect(savepoint(space, args).stdout).toContain(hint)
  }
  const undo = () => savepoint(space, ['undo', '--keep-running']).stdout
  expect(undo()).toMatch(/^Undone: tag/)
  expect([undo(), space.read('a')]).toEqual([expect.stringMatching(/^Undone: revert/), 'a1'])
  expect([undo(), space.read('a')]).toEqual([expect.stringMatching(/^Undone: rollback/), 'a2'])
  run.say('here')
  const { stdout } = await run.ended
  expect(stdout).toContain('still here')
  // From inside of the run `undo` is not about it.
  expect(stdout).toContain('To undo: savepoint undo\n')
  expect(stdout).toContain('Undone: tag')
  expect(stdout).not.toContain('To stop it')
})

it('nothing is stopped for a rollback that cannot be done', async () => {
  first()
  const run = await startRun(space, 'read line; echo "still $line"')
  expect(savepoint(space, ['rollback', 'nowhere'])).toMatchObject({ status: 12 })
  expect(savepoint(space, ['rollback', 'good', '--', 'b'])).toMatchObject({ status: 12 })
  const dry = savepoint(space, ['rollback', 'good', '--dry-run'])
  expect(dry).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(`^savepoint: ${run.id} .* would be stopped first\\n$`),
  })
  expect(savepointJson(space, ['rollback', 'good', '--dry-run']).would_stop).toEqual([run.id])
  expect(savepointJson(space, ['rollback', 'good', '--dry-run', '--keep-running']).would_stop).toEqual([])
  expect(savepoint(space, ['rollback', 'good', '--to', join(space.base, 'then')])).toMatchObject({ status: 0 })
  run.say('here')
  expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('still here') })
})

it('status names a live run, how to end it, and offers no other step meanwhile', async () => {
  savepoint(space, ['run', '-q', '--', 'touch', 'made'])
  savepoint(space, ['undo'])
  const run = await startRun(space, 'read line; echo more >> a')
  const { stdout } = savepoint(space, ['status'])
  expect(stdout).toMatch(new RegExp(`^Running: ${run.id}, (?:just now|\\d+ seconds? ago): sh -c`, 'm'))
  expect(stdout).toContain('To stop it and take it back: savepoint undo\n')
  expect(stdout).not.toContain('To redo')
  expect(savepointJson(space, ['status']).running).toMatchObject([{ id: run.id, ended_at: null }])
  run.say('go on')
  await run.ended
  expect(savepoint(space, ['status']).stdout).not.toContain('Running')
})

it('`rollback RUN` of the run at work stops it and takes back what it did', async () => {
  const run = await startRun(space, 'printf a2 > a; READY; sleep 300')
  expect(savepoint(space, ['rollback', run.id])).toMatchObject({ stderr: expect.stringContaining(`stopped ${run.id}`) })
  expect(space.read('a')).toBe('a1')
  expect((await run.ended).signal).toBe('SIGTERM')
})

describe('what the run at work has done until now', () => {
  const script = 'printf a2 > a; echo x > made; echo said >&2; READY; read line; cat a; echo " $line"; echo y > later'
  /** With a log in the target that the shell opened for the run, and somebody else at work. */
  async function startWithLog() {
    space.write('theirs', 't1')
    space.sh('mkdir sub')
    const run = await startRun(space, script, { before: ['sh', '-c', 'exec 2> log; exec "$@"', 'sh'] })
    space.write('theirs', 't2')
    return run
  }
  const outside = { path: 'theirs', why: 'outside' }

  it('--dry-run of `rollback RUN` and of `undo` shows it, and stops nothing', async () => {
    const run = await startWithLog()
    const plan = {
      dry_run: true,
      changes: [
        { action: 'replace', path: 'a', files: 1 },
        { action: 'replace', path: 'log', files: 1 },
        { action: 'delete', path: 'made', files: 1 },
      ],
      left_alone: [outside],
      would_stop: [run.id],
    }
    expect(savepointJson(space, ['rollback', run.id, '--dry-run'])).toMatchObject(plan)
    expect(savepointJson(space, ['undo', '--dry-run'])).toMatchObject({ operation: { id: null }, restore: plan })
    const { stderr } = savepoint(space, ['undo', '--dry-run'])
    expect(stderr).toContain(`${run.id} (`)
    expect(stderr).toContain('would be stopped first')
    run.say('still here')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a2 still here') })
  })

  it('`rollback RUN --keep-running` takes that back, leaves what others did, and is undone with the run', async () => {
    const run = await startWithLog()
    expect(savepointJson(space, ['rollback', run.id, '--keep-running']).left_alone).toEqual([outside])
    expect(['a', 'log', 'made', 'theirs'].map(path => space.read(path))).toEqual(['a1', '', undefined, 't2'])
    run.say('on it goes')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a1 on it goes') })
    expect(savepoint(space, ['undo']).stdout).toContain(`Undone: ${run.id}`)
    expect([space.read('a'), space.read('later')]).toEqual(['a1', undefined])
    // It was a part of what was done while the run went on: all of that is back.
    expect(savepoint(space, ['undo']).stderr).toContain('there is nothing to undo')
  })

  it('where undo would be refused, in a subdirectory, nothing is stopped for it', async () => {
    const run = await startWithLog()
    const refused = { status: 2, stderr: expect.stringContaining('the operation also changed a outside of it') }
    for (const args of [['undo'], ['undo', '--dry-run']])
      expect(savepoint(space, args, { cwd: space.at('sub') })).toMatchObject(refused)
    run.say('still here')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a2 still here') })
  })
})

it('from inside of the run it goes on, whatever was asked for', async () => {
  first()
  const cli = builtCommand.map(word => `'${word}'`).join(' ')
  const script = `printf a2 > a; READY; ${cli} rollback good 2>&1; env -u SAVEPOINT_RUN ${cli} snapshot -m own; cat a; echo " alive"`
  const run = await startRun(space, script)
  const { status, stdout } = await run.ended
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('a1 alive') })
  expect(stdout).not.toContain('stopped')
  // Known by its ancestors, although its environment does not say so.
  const own = savepointJson(space, ['snapshots']).find((each: { label: string }) => each.label === 'own')
  expect(own.run).toBe(run.id)
})

it('--restart starts the command again, as a run that continues the other', async () => {
  first()
  const script = 'cat a; printf a2 > a; if [ -e ../again ]; then exit 5; fi; touch ../again; READY; sleep 300'
  const run = await startRun(space, script)
  const { status, stderr } = savepoint(space, ['rollback', 'good', '--restart'])
  expect({ status, stderr }).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/stopped run_\w+ .*; it is started again/),
  })
  const end = await run.ended
  expect(end).toMatchObject({ status: 5, stdout: expect.stringMatching(/^a1READY run_\w+\na1$/) })
  expect(end.stderr).toMatch(/run_\w+ was stopped for `savepoint rollback good`, and is started again/)
  const [second, before] = savepointJson(space, ['runs'])
  expect([before.id, before.signal, before.continues]).toEqual([run.id, 'SIGTERM', null])
  expect([second.exit_code, second.continues]).toEqual([5, run.id])
})

it('--restart and --keep-running exclude each other', () => {
  first()
  expect(savepoint(space, ['rollback', 'good', '--restart', '--keep-running'])).toMatchObject({ status: 2 })
})

describe.skipIf(!hasTerminal)(hasTerminal ? 'on a terminal' : 'on a terminal (skipped: needs python3)', () => {
  it('the agent that is started again finds the terminal as it was at first, and owns it', async () => {
    first()
    const source = `
import os, signal, sys, termios, tty
again = os.path.exists('../again')
lflag = termios.tcgetattr(0)[3]
print('COOKED' if lflag & termios.ICANON else 'RAW', os.tcgetpgrp(0) == os.getpgrp(), open('a').read(), flush=True)
if again:
    print('READ', sys.stdin.readline().strip())
    sys.exit(4)
open('../again', 'w').close()
open('a', 'w').write('a2')
signal.signal(signal.SIGTERM, signal.SIG_IGN)
tty.setraw(0)
print('WAITING', flush=True)
while True: signal.pause()
`
    const program = join(space.base, 'agent.py')
    writeFileSync(program, source)
    const shell = onTerminal(
      [...builtCommand, 'run', '--', 'python3', '-u', program],
      [{ wait: 'COOKED True a1[\\s\\S]*COOKED True a1', type: 'typed\n' }],
      { cwd: space.dir, env: space.env },
    )
    await vi.waitUntil(() => space.read('a') === 'a2', { timeout: 60_000 })
    expect(savepoint(space, ['rollback', 'good', '--restart']).status).toBe(0)
    const { output, status, complete } = await shell
    expect({ output, status, complete }).toMatchObject({ status: 4, complete: true })
    expect(output).toContain('READ typed')
  })
})

describe('two runs at once', () => {
  it('a rollback to a snapshot stops both', async () => {
    first()
    const one = await startRun(space, 'printf 1 > one; READY; sleep 300')
    const two = await startRun(space, 'printf 2 > two; READY; sleep 300')
    const { status, stderr } = savepoint(space, ['rollback', 'good'])
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${one.id}`) })
    expect(stderr).toContain(`stopped ${two.id}`)
    expect([(await one.ended).signal, (await two.ended).signal]).toEqual(['SIGTERM', 'SIGTERM'])
    expect([space.read('one'), space.read('two')]).toEqual([undefined, undefined])
  })

  it.each([0, 1])('taking back run %i of them stops that one only, and leaves what the other did', async which => {
    const one = await startRun(space, 'printf 1 > one; READY; read x; cat one')
    const two = await startRun(space, 'printf 2 > two; READY; read x; cat two')
    const [meant, other] = which === 0 ? [one, two] : [two, one]
    expect(savepoint(space, ['rollback', meant.id]).stderr).toContain(`stopped ${meant.id}`)
    expect((await meant.ended).signal).toBe('SIGTERM')
    expect([space.read('one'), space.read('two')]).toEqual(which === 0 ? [undefined, '2'] : ['1', undefined])
    other.say('go on')
    expect((await other.ended).status).toBe(0)
  })

  it('taking back one that is over stops nobody, and leaves what those at work changed since', async () => {
    space.write('both', '0')
    const over = await startRun(space, 'printf 1 > one; printf 1 > both; printf 2 > a; READY')
    await over.ended
    const goesOn = await startRun(space, 'printf 2 > both; READY; read line; cat a; echo " $line"')
    const third = await startRun(space, 'read line; echo "third $line"')
    const dry = savepointJson(space, ['rollback', over.id, '--dry-run'])
    expect(dry).toMatchObject({ would_stop: [], left_alone: [{ path: 'both' }] })
    const { status, stdout, stderr } = savepoint(space, ['rollback', '--run', over.id])
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' })
    expect(stdout).toContain('To undo: savepoint undo --keep-running\n')
    expect(['one', 'both', 'a'].map(path => space.read(path))).toEqual([undefined, '2', 'a1'])
    goesOn.say('here')
    expect(await goesOn.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a1 here') })
    third.say('here')
    expect(await third.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('third here') })
  })

  it('nor is lost what one at work did in the same file meanwhile', async () => {
    const one = await startRun(space, 'READY; read line; echo A >> x; echo A > own')
    const two = await startRun(space, 'echo B > x; READY; read line')
    one.say('')
    await one.ended
    expect(savepointJson(space, ['rollback', one.id]).left_alone).toEqual([{ path: 'x', why: 'overlapped' }])
    expect([space.read('x'), space.read('own')]).toEqual(['B\nA\n', undefined])
    two.say('')
    expect((await two.ended).status).toBe(0)
  })

  it('also when nobody sees what it does', async () => {
    const one = await startRun(space, 'READY; read line; echo A >> x; echo A > own')
    const two = await startRun(space, 'echo B > x; READY; read line', { args: ['--tracer', 'none'] })
    one.say('')
    await one.ended
    // It may have written either.
    expect(savepointJson(space, ['rollback', one.id]).left_alone).toMatchObject([{ path: 'own' }, { path: 'x' }])
    expect([space.read('x'), space.read('own')]).toEqual(['B\nA\n', 'A\n'])
    two.say('')
    expect((await two.ended).status).toBe(0)
  })

  it('unless they are to be started again', async () => {
    const over = await startRun(space, 'printf 1 > one; READY')
    await over.ended
    const run = await startRun(space, '[ ! -e ../again ] || exit 7; touch ../again; READY; sleep 300')
    const { status, stderr } = savepoint(space, ['rollback', over.id, '--restart'])
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${run.id}`) })
    expect((await run.ended).status).toBe(7)
    expect(space.read('one')).toBeUndefined()
  })

  it('the role of the writer passes on, whichever ends first', async () => {
    for (const firstEnds of [true, false]) {
      const one = await startRun(space, 'read x')
      const two = await startRun(space, 'read x')
      const [ends, goesOn] = firstEnds ? [one, two] : [two, one]
      expect(writerOf(space, 'both')).toBe(one.child.pid)
      ends.say('')
      await ends.ended
      expect(writerOf(space, 'left')).toBe(goesOn.child.pid)
      goesOn.say('')
      await goesOn.ended
      expect([one.child.pid, two.child.pid]).not.toContain(writerOf(space, 'none'))
    }
    const labels = savepointJson(space, ['snapshots']).map((each: { label: string | null }) => each.label)
    expect(labels.filter(Boolean)).toEqual(['none', 'left', 'both', 'none', 'left', 'both'])
  })
})

/** Takes a snapshot, and says which process took it: it has signed the lock. */
function writerOf(where: Workspace, label: string): number {
  expect(savepoint(where, ['snapshot', '-m', label]).status).toBe(0)
  return Number(where.sh('cat "$SAVEPOINT_HOME"/timelines/*/lock').split(' ')[0])
}

it.skipIf(!isRoot)('the same for an ordinary user', async () => {
  space.write('b')
  giveToUser(space)
  expect(savepointAsUser(space, ['snapshot', '-m', 'good']).status).toBe(0)
  const run = await startRun(space, 'printf a2 > a; setsid sleep 300 & READY; sleep 300', {
    before: asOrdinaryUser.before,
    spawn: asOrdinaryUser.spawn as object,
  })
  const { status, stderr } = savepointAsUser(space, ['rollback', 'good'])
  expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining(`stopped ${run.id}`) })
  expect(space.read('a')).toBe('a1')
  expect((await run.ended).signal).toBe('SIGTERM')
})

it('exit code as a shell sees it', () => {
  const cli = builtCommand.map(word => `'${word}'`).join(' ')
  first()
  const script = `${cli} run -- sh -c 'touch up; exec sleep 300' 2>/dev/null & pid=$!
    while [ ! -e up ]; do sleep 0.02; done
    ${cli} rollback good >/dev/null 2>&1; wait $pid; echo $?`
  expect(space.sh(`set +e\n${script}`)).toBe(`${TERM_EXIT}\n`)
})
