/** What goes on when the command of a run ends: what it waits for, who records it, and what it may not do. */
import { existsSync, readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { type FileLock, tryLock } from '../src/store/file-lock.ts'
import { type BackgroundRun, startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { leftRecorder } from './support/left-recorder.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

/** The command `rm` is executed, or is held at that. */
const untilTold = `until grep -qs '"rm"' "$SAVEPOINT_HOME"/timelines/*/runs/*/exec.jsonl; do sleep 0.01; done`
/** Far longer than what has done nothing is waited for. */
const AT_REST_MS = 500
const DAY = 24 * 60 * 60 * 1000
const run = (script: string, options: { tracer?: string; env?: NodeJS.ProcessEnv } = {}) =>
  savepoint(space, ['run', '--tracer', options.tracer ?? 'auto', '--', 'sh', '-c', script], {
    env: { ...space.env, ...options.env },
  })

/** A run that leaves a process, which waits for `go` to do `script`. */
function leave(script: string, env: NodeJS.ProcessEnv = {}) {
  space.sh('mkfifo go')
  return run(`setsid sh -c 'read line < go; ${script}' > /dev/null 2>&1 < /dev/null &`, { env })
}

async function letGo(recorder: string, fifo = 'go'): Promise<void> {
  space.sh(`echo > ${fifo}`)
  await vi.waitUntil(() => !existsSync(`/proc/${recorder}`), { timeout: 60_000, interval: 20 })
}

it.each([['seccomp'], ['ptrace']])(
  'a command that is held when the run ends waits for its snapshot, too: %s',
  tracer => {
    const work = 'mkdir work; head -c 60000000 /dev/urandom > work/data; echo important > work/notes.txt'
    // To capture the large one takes much longer than to see that it was told.
    const { stderr, status } = run(`${work}; rm -rf work & ${untilTold}; exit 3`, { tracer })
    expect([status, stderr]).toEqual([3, expect.stringContaining('snapshot on the way')])
    const guarded = savepointJson(space, ['trace']).commands.find(({ note }: { note: string | null }) => note)
    expect(guarded.note).toMatch(/^guarded by snap_/)
    const { status: found } = savepoint(space, ['revert', 'work/notes.txt', '--from', guarded.note.split(' ').at(-1)])
    expect([found, space.read('work/notes.txt')]).toEqual([0, 'important\n'])
  },
)

it.each([['seccomp'], ['ptrace']])('what such a command destroys is taken back with the run: %s', tracer => {
  for (let i = 0; i < 50; i++) space.write(`d/${i}`)
  const { stderr } = run(`head -c 60000000 /dev/urandom > big; rm -rf d & ${untilTold}; exit 3`, { tracer })
  expect(stderr).toContain('1 added, 50 deleted')
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect([space.read('d/0'), space.read('d/49')]).toEqual(['d/0\n', 'd/49\n'])
})

it.each([['seccomp'], ['ptrace']])('what is at work when the command ends is its work: %s', tracer => {
  for (let i = 1; i <= 100; i++) space.write(`d/${i}`)
  const { stderr, status } = run('for i in $(seq 40); do rm -f d/$i & done; exit 6', { tracer })
  expect([status, stderr]).toEqual([6, expect.stringContaining('40 deleted')])
  expect(stderr).not.toContain('of this run go on')
  expect(savepoint(space, ['undo']).stderr).not.toContain('somebody')
  expect(readdirSync(space.at('d'))).toHaveLength(100)
})

/** A run whose command has ended, and which waits for `held` to take its last snapshot, while what it left does its work. */
async function changeAfterEnd(): Promise<{ child: BackgroundRun; held: FileLock }> {
  space.write('b')
  space.sh('mkfifo ../go ../done')
  const left =
    '(read line < ../go; rm b; echo new > c; echo > ../done; read line < ../go) > /dev/null 2>&1 < /dev/null &'
  const child = await startRun(space, `${left} READY; read line; exit 3`)
  await untilLater(space, child.id)
  const held = tryLock(
    join(space.home, 'timelines', readdirSync(join(space.home, 'timelines'))[0]!, 'lock'),
    'exclusive',
    'hold it',
  )!
  child.say('')
  // Its end is seen by nobody but who waits; it is time itself that is waited for.
  await pause(AT_REST_MS)
  space.sh('echo > ../go; read line < ../done')
  return { child, held }
}

it("what it changes after that, until the state at the end is captured, is the run's, too", async () => {
  const { child, held } = await changeAfterEnd()
  held.release()
  const { status, stderr } = await child.ended
  expect([status, stderr]).toEqual([3, expect.stringContaining('1 added, 1 deleted')])
  expect(stderr).toContain('of this run goes on')
  const recorder = await leftRecorder(space.home)
  expect(savepoint(space, ['undo']).stderr).not.toContain('somebody')
  expect([space.read('b'), existsSync(space.at('c'))]).toEqual(['b\n', false])
  await letGo(recorder, '../go')
})

it('and when who waits for that is killed, what goes on is neither stopped nor lost', async () => {
  const { child, held } = await changeAfterEnd()
  child.child.kill('SIGKILL')
  await child.ended
  held.release()
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect([space.read('b'), existsSync(space.at('c'))]).toEqual(['b\n', false])
  space.sh('echo > ../go')
})

it('what is held again and again after its end does not keep a run from ending', async () => {
  const loop = 'while :; do mkdir -p x; echo 1 > x/f; rm -rf x; done'
  expect(run(`${loop} > /dev/null 2>&1 & echo $! > ../pid; ${untilTold}; exit 5`).status).toBe(5)
  const recorder = await leftRecorder(space.home)
  space.sh('kill $(cat ../pid)')
  // With the last of them: until then something is removed and made.
  await vi.waitUntil(() => !existsSync(`/proc/${recorder}`), { timeout: 60_000, interval: 20 })
})

it('what the run waits for at its end is bounded', () => {
  space.write('../store home/config.yaml', 'snapshots: {triggers: {guard_max_hold_ms: 1}}\n')
  const work = 'head -c 60000000 /dev/urandom > big; mkdir work; echo 1 > work/a'
  const { stderr } = run(`${work}; rm -rf work & ${untilTold}; exit 0`)
  expect(stderr).not.toContain('defect')
  expect(
    savepointJson(space, ['trace']).commands.some(({ note }: { note: string | null }) =>
      /too late|went on before its snapshot/.test(note ?? ''),
    ),
  ).toBe(true)
})

it('what goes on cannot change what Savepoint keeps', async () => {
  const { stderr } = leave(`rm -rf "${space.home}"/timelines; echo done`)
  expect(stderr).toContain('of this run goes on')
  await letGo(await leftRecorder(space.home))
  expect(savepointJson(space, ['trace']).commands.map(({ argv }: { argv: string[] }) => argv[0])).toContain('rm')
  expect(savepoint(space, ['verify']).status).toBe(0)
})

it('who records it needs no module that the user has Node load', async () => {
  space.write('hook.js', '')
  leave('/bin/true afterwards', { NODE_OPTIONS: '--require ./hook.js' })
  await letGo(await leftRecorder(space.home))
  const { commands } = savepointJson(space, ['trace'])
  expect(commands.map(({ argv }: { argv: string[] }) => argv.join(' '))).toContain('/bin/true afterwards')
  expect(savepoint(space, ['trace']).stderr).not.toContain('not traced to its end')
})

it('who goes on by forking and ending, again and again, is followed to its end', async () => {
  const generations = 400
  const chain = `import os, time
for n in range(${generations}):
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    os.mkdir('made'); os.rmdir('made')
    open('lines', 'a').write('.')
    time.sleep(0.004)
os.mkdir('done')`
  const child = await startRun(space, `READY; exec python3 -c "${chain}" > /dev/null 2>&1`)
  await child.ended
  expect(existsSync(space.at('done'))).toBe(false)
  await vi.waitUntil(() => existsSync(space.at('done')), { timeout: 30_000, interval: 20 })
  expect(space.read('lines')).toHaveLength(generations)
})

it('what goes on does not fill the disk with what it executes', async () => {
  leave('/bin/true one; read line < go; /bin/true two')
  const recorder = await leftRecorder(space.home)
  const [{ id }] = savepointJson(space, ['runs'])
  const [timeline] = readdirSync(join(space.home, 'timelines'))
  truncateSync(join(space.home, 'timelines', timeline!, 'runs', id, 'exec.jsonl'), 65 * 1024 * 1024)
  await letGo(recorder)
  space.sh('echo > go')
  expect(savepoint(space, ['trace']).stderr).toContain('not traced to its end')
})

it('gc leaves the trace of what goes on alone, however long ago its run has ended', async () => {
  leave('/bin/true afterwards')
  const recorder = await leftRecorder(space.home)
  const later = await space.open({ now: () => Date.now() + 40 * DAY })
  const [old] = later.runs()
  space.write('another')
  await later.snapshot({})
  for (const id of new Set([old!.before, old!.after])) if (id) await later.delete([id])
  const muchLater = await space.open({ now: () => Date.now() + 48 * DAY })
  expect((await muchLater.gc()).forgottenTraces).toBe(0)
  await letGo(recorder)
  expect((await muchLater.gc()).forgottenTraces).toBe(1)
})

const CHAIN = `#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  signal(SIGCHLD, SIG_IGN);
  if (fork()) return 0;
  dprintf(open("group", O_CREAT | O_WRONLY, 0600), "%d", setsid());
  for (int fd = 0; fd < 3; fd++) close(fd);
  for (time_t end = time(0) + 60; time(0) < end; usleep(100)) if (fork() > 0) _exit(0);
}`

it('who forks and ends so fast that it is gone when all are looked at is named, with its group', () => {
  compileC(join(space.base, 'chain'), CHAIN)
  const { stderr } = savepoint(space, ['run', '--', 'sh', '-c', '../chain; until [ -s group ]; do :; done'])
  const group = Number(space.read('group'))
  try {
    const [, ended] = /chain \(\d+\) of this run goes on: .*; to end that: kill (.*)\n/.exec(stderr) ?? []
    // Where it was slow for once, all that were looked at were still there.
    expect(ended).toMatch(new RegExp(`^(-- -${group}|\\d+)$`))
  } finally {
    process.kill(-group, 'SIGKILL')
  }
})
