/** Processes that the helper holds still do not stay so when it is killed, by whatever driver, and whoever reads lives on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { REQUEST } from '../src/tracers/frames.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { endRuns, startRun } from './support/background-run.ts'
import { builtCommand, savepoint, savepointInShell } from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { HelperProcess } from './support/helper-process.ts'
import { Workspace } from './support/workspace.ts'

const works = new Map(probeTracers().map(probe => [probe.name as string, probe]))

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-freeze-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const stateOf = (pid: number): string => {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1]!
  } catch {
    return 'gone'
  }
}
const at = (name: string) => join(directory, name)
const pidIn = (name: string) => Number(readFileSync(at(name), 'utf8'))

/** Until something is so that nobody tells us. */
async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 3000 && !isSo(); i++) await new Promise(resolve => setTimeout(resolve, 10))
  expect(isSo()).toBe(true)
}

/** Waits for a file of each name, then ends; what was stopped before stays so. */
const script = `echo $$ > first
  sh -c 'echo $$ > second.new; mv second.new second; while [ ! -e go ]; do sleep 0.02; done; echo > second-ended' &
  sh -c 'echo $$ > before.new; mv before.new before; kill -STOP $$; echo > before-ended' &
  while [ ! -e go ]; do sleep 0.02; done; echo > first-ended`

const drivers = ['seccomp', 'ptrace', 'ebpf', 'none']

describe.each(drivers)('%s', driver => {
  const probe = works.get(driver)
  const isMissing = driver !== 'none' && !probe?.works

  it.skipIf(isMissing)(isMissing ? `(skipped: ${probe?.detail})` : 'what it has stopped goes on', async () => {
    const helper = new HelperProcess(['--driver', driver, '--', 'sh', '-c', script], { cwd: directory })
    const closed = once(helper.child, 'close')
    await until(() => existsSync(at('second')) && existsSync(at('before')) && /[Tt]/.test(stateOf(pidIn('before'))))
    // Once more: what was stopped before is not continued with the others.
    for (const request of [REQUEST.freeze, REQUEST.thaw, REQUEST.freeze]) await helper.ask(request)
    const [first, second, before] = [pidIn('first'), pidIn('second'), pidIn('before')]
    // Traced by ptrace, it stops a moment later, before its next instruction.
    // D: in the middle of a vfork, whose child has stopped.
    await until(() => /^[TtD]{2}[Tt]$/.test([first, second, before].map(stateOf).join('')))
    writeFileSync(at('go'), '')
    helper.child.kill('SIGKILL')
    await until(() => existsSync(at('first-ended')) && existsSync(at('second-ended')))
    // That one was not stopped by the helper.
    await until(() => stateOf(before) === 'T')
    expect(existsSync(at('before-ended'))).toBe(false)
    process.kill(before, 'SIGCONT')
    // Nobody may have taken note of its end yet.
    await until(() => existsSync(at('before-ended')) && /gone|Z/.test(stateOf(before)))
    await closed
  })

  it.skipIf(isMissing)(
    isMissing ? `nothing is left (skipped: ${probe?.detail})` : 'nothing is left of a freeze that ended',
    async () => {
      const helper = new HelperProcess(['--driver', driver, '--', 'sh', '-c', 'echo > first; exec sleep 300'], {
        cwd: directory,
      })
      const closed = once(helper.child, 'close')
      const children = () => readFileSync(`/proc/${helper.child.pid}/task/${helper.child.pid}/children`, 'utf8')
      await until(() => existsSync(at('first')))
      await helper.barrier()
      const before = children()
      for (let i = 0; i < 3; i++) {
        await helper.ask(REQUEST.freeze)
        expect(children()).not.toBe(before)
        await helper.ask(REQUEST.thaw)
        expect(children()).toBe(before)
      }
      helper.child.kill('SIGTERM')
      await closed
    },
  )
})

it.each(['none', 'seccomp'])('%s: who waits in a vfork, which cannot be stopped, is not waited for', async driver => {
  const program = at('vforks')
  compileC(
    program,
    `#include <fcntl.h>
     #include <stdio.h>
     #include <unistd.h>
     int main(void) {
       if (vfork() == 0) {
         int fd = open("begun.new", O_CREAT | O_WRONLY, 0600);
         dprintf(fd, "%d", getpid());
         rename("begun.new", "begun");
         for (;;) pause();
       }
       return 0;
     }`,
  )
  const helper = new HelperProcess(['--driver', driver, '--', program], { cwd: directory })
  const closed = once(helper.child, 'close')
  await until(() => existsSync(at('begun')))
  const took: number[] = []
  for (let i = 0; i < 5; i++) {
    const started = performance.now()
    await helper.ask(REQUEST.freeze)
    took.push(performance.now() - started)
    await helper.ask(REQUEST.thaw)
  }
  process.kill(pidIn('begun'), 'SIGKILL')
  await closed
  // Where it is waited for, that is a hundred looks with a millisecond between them.
  expect(Math.min(...took)).toBeLessThan(90)
})

/** A workspace for each test, without runs that outlive it. */
function useWorkspace(): () => Workspace {
  let space: Workspace
  beforeEach(() => {
    space = new Workspace()
    space.write('a', 'a1')
  })
  afterEach(async () => {
    await endRuns()
    space.remove()
  })
  return () => space
}

describe('a helper that is killed while it stops an agent', () => {
  const workspace = useWorkspace()

  it('the agent is stopped all the same, and the rollback carried out', async () => {
    const space = workspace()
    expect(savepoint(space, ['snapshot', '-m', 'good']).status).toBe(0)
    const script = `printf a2 > a; trap 'touch ../asked' TERM; echo $PPID > ../helper; READY; while :; do sleep 0.02; done`
    const run = await startRun(space, script)
    const [program, ...words] = [...builtCommand, 'rollback', 'good']
    const rollback = spawn(program!, words, { cwd: space.dir, env: space.env, stdio: 'ignore' })
    const done = once(rollback, 'close')
    await until(() => existsSync(join(space.base, 'asked')))
    process.kill(Number(readFileSync(join(space.base, 'helper'), 'utf8')), 'SIGKILL')
    expect(await done).toEqual([0, null])
    expect(space.read('a')).toBe('a1')
    expect(await run.ended).toMatchObject({ status: 137 })
  })
})

describe('a run inside of another, which no helper watches', () => {
  const workspace = useWorkspace()

  it('goes on when its supervisor is killed while it holds it still', async () => {
    const space = workspace()
    space.write('sub/f', 'f1')
    const sub = { cwd: space.at('sub') }
    expect(savepoint(space, ['snapshot', '-m', 'good'], sub).status).toBe(0)
    const inner = 'printf f2 > f; echo $$ > ../../inner.new; mv ../../inner.new ../../inner; read x; touch ../../on'
    const env = 'SAVEPOINT_FAILPOINT=restore:journal'
    const waiting = 'while [ ! -e ../../on ]; do sleep 0.05; done'
    const run = await startRun(
      space,
      `READY; cd sub; ${env} ${savepointInShell} run --tracer none -- sh -c '${inner}'; ${waiting}`,
    )
    await until(() => existsSync(join(space.base, 'inner')))
    const pid = Number(readFileSync(join(space.base, 'inner'), 'utf8'))
    const { stderr } = savepoint(space, ['rollback', 'good', '--keep-running'], sub)
    expect(stderr).toContain('Cannot tell what became of the request')
    await until(() => stateOf(pid) === 'S')
    run.say('')
    expect((await run.ended).status).toBe(0)
    expect(existsSync(join(space.base, 'on'))).toBe(true)
  })
})
