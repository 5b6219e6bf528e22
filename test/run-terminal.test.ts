/** T4: the terminal is the command's. Keys, window size and job control work as without us. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRun } from './support/background-run.ts'
import { cliCommand } from './support/cli.ts'
import { hasTerminal, onTerminal, type Step } from './support/terminal.ts'
import { Workspace } from './support/workspace.ts'

const SIGHUP = 1
const SIGTERM = 15
const title = hasTerminal ? 'on a terminal' : 'on a terminal (skipped: needs python3 for a pseudo-terminal)'

let space: Workspace
let program: string
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
  program = join(space.base, 'program.py')
})
afterEach(() => space.remove())

/** Runs a python program under `savepoint run`. */
function run(source: string, steps: Step[]) {
  writeFileSync(program, source)
  return onTerminal([...cliCommand, 'run', '--', 'python3', '-u', program], steps, { cwd: space.dir, env: space.env })
}

const savedRun = async () => {
  const savepoint = await space.open({ create: false })
  const [last] = savepoint.runs().sort((a, b) => b.startedAt - a.startedAt)
  return { savepoint, last: last! }
}

it.each(['auto', 'ptrace', 'none'])('without a terminal, SIGINT to us is passed on, tracer %s', async tracer => {
  const live = await startRun(space, "trap 'echo told > a; kill $!; exit 6' INT; sleep 300 >&- 2>&- & READY; wait", {
    args: ['--tracer', tracer],
    spawn: { detached: true },
  })
  live.child.kill('SIGINT')
  expect(await live.ended).toMatchObject({ status: 6 })
  expect(space.read('a')).toBe('told\n')
})

describe.skipIf(!hasTerminal)(title, () => {
  it('the command has it: three times a tty, the foreground group, its size, and changes of its size', async () => {
    const source = `
import os, signal, sys
print('TTY', [os.isatty(fd) for fd in (0, 1, 2)], os.tcgetpgrp(0) == os.getpgrp())
def changed(*_):
    print('NOW', tuple(os.get_terminal_size()))
    sys.exit(4)
signal.signal(signal.SIGWINCH, changed)
print('SIZE', tuple(os.get_terminal_size()))
while True: signal.pause()
`
    const { output, status, complete } = await run(source, [
      { wait: 'SIZE \\(80, 24\\)', resize: { rows: 33, columns: 111 } },
    ])
    expect(output).toContain('TTY [True, True, True] True')
    expect(output).toContain('SIZE (80, 24)')
    expect(output).toContain('NOW (111, 33)')
    expect([status, complete]).toEqual([4, true])
  })

  it('raw mode is left as the command sets it: a full-screen program gets Ctrl-C as a character', async () => {
    const source = `
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'RAW')
key = os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, before)
print('KEY', key)
`
    const { output, status } = await run(source, [{ wait: 'RAW', type: '\x03' }])
    expect(output).toContain("KEY b'\\x03'")
    expect(status).toBe(0)
  })

  it('Ctrl-C is for the command, which may live on; we take the last snapshot', async () => {
    const source = `
import signal, sys
def stop(*_):
    open('a', 'w').write('saved on Ctrl-C')
    print('CLEANED')
    sys.exit(5)
signal.signal(signal.SIGINT, stop)
open('b', 'w').write('b')
print('READY')
while True: signal.pause()
`
    const { status, output } = await run(source, [{ wait: 'READY', type: '\x03' }])
    expect(output).toContain('CLEANED')
    expect(output).toContain('To undo: savepoint undo')
    expect(status).toBe(5)
    const { savepoint, last } = await savedRun()
    expect(last).toMatchObject({ exitCode: 5, after: expect.any(String) })
    expect(savepoint.read(last.after!, 'a').toString()).toBe('saved on Ctrl-C')
    await savepoint.undo()
    expect([space.read('a'), space.read('b')]).toEqual(['a1', undefined])
  })

  it('Ctrl-C comes to it once', async () => {
    const source = `
import signal, sys
count = 0
def more(*_):
    global count
    count += 1
    print('GOT', count)
signal.signal(signal.SIGINT, more)
print('READY')
sys.stdin.readline()
print('IN ALL', count)
`
    const { output } = await run(source, [
      { wait: 'READY', type: '\x03' },
      { wait: 'GOT 1', type: '\n' },
    ])
    expect(output).toContain('IN ALL 1')
  })

  it('a command that dies of Ctrl-C: we outlive it, capture, and then die of the same', async () => {
    const source = `
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
open('a', 'w').write('half done')
print('READY')
while True: signal.pause()
`
    const { status } = await run(source, [{ wait: 'READY', type: '\x03' }])
    expect(status).toBe(-2)
    const { savepoint, last } = await savedRun()
    expect(last).toMatchObject({ signal: 'SIGINT', after: expect.any(String) })
    await savepoint.undo()
    expect(space.read('a')).toBe('a1')
  })

  for (const [name, number] of [
    ['SIGTERM', SIGTERM],
    ['SIGHUP', SIGHUP],
  ] as const) {
    it(`${name} to us reaches the command, and the last snapshot is still taken`, async () => {
      const source = `
import signal, sys
def stop(*_):
    open('a', 'w').write('told to stop')
    sys.exit(6)
signal.signal(signal.${name}, stop)
print('READY')
while True: signal.pause()
`
      const { status } = await run(source, [{ wait: 'READY', signal: number }])
      expect(status).toBe(6)
      const { savepoint, last } = await savedRun()
      expect(savepoint.read(last.after!, 'a').toString()).toBe('told to stop')
    })
  }

  const kinds = [{ tracer: 'none' }, { tracer: 'auto' }, { tracer: 'ptrace' }, { tracer: 'seccomp', exits: 'ptrace' }]
  describe.each(kinds)('in a shell with job control, tracer $tracer $exits', ({ tracer, exits }) => {
    function inShell(source: string, steps: Step[]) {
      writeFileSync(program, source)
      const line = [...cliCommand, 'run', '--', 'python3', '-u', program].map(word => `'${word}'`).join(' ')
      return onTerminal(
        ['sh', '-i'],
        [{ wait: '\\$ ', type: `${line}\n` }, ...steps, { wait: 'To undo', type: 'exit 9\n' }],
        { cwd: space.dir, env: { ...space.env, SAVEPOINT_TRACER: tracer, SAVEPOINT_EXITS: exits } },
      )
    }

    /** The command stops, by what `stop` types or by itself; the shell looks at it and goes on; then it gets its line. */
    async function stopAndGoOn(source: string, stop: Step[]) {
      const { output, status, complete } = await inShell(source, [
        ...stop,
        { wait: 'Stopped|Suspended', type: 'grep ^State: /proc/$(cat pid)/status\n' },
        // fg repeats the command line; what is typed from then on is for the command.
        // t: of one that is traced by ptrace.
        { wait: 'State:\\s+[Tt]', type: 'fg\n' },
        { wait: 'program\\.py', type: 'typed after fg\n' },
      ])
      expect({ status, complete, output }).toMatchObject({ status: 9, complete: true })
      expect(space.read('a')).toBe('typed after fg\n')
    }

    const start = 'import os, signal, sys\nopen("pid", "w").write(str(os.getpid()))\n'
    const readLine = 'open("a", "w").write(sys.stdin.readline())\n'

    it('Ctrl-Z and fg: both stop, the command first, and both go on', () =>
      stopAndGoOn(`${start}print('READY')\n${readLine}`, [{ wait: 'READY', type: '\x1a' }]))

    it('a command that stops itself alone gives the terminal back to the shell, and goes on with fg', () =>
      stopAndGoOn(`${start}os.kill(os.getpid(), signal.SIGSTOP)\n${readLine}`, []))

    it('a command that does not stop at Ctrl-Z keeps the terminal', async () => {
      const take = 'signal.sigwait([signal.SIGTSTP])'
      const source = `${start}signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])\nprint('READY')\n${take}\nprint('NOT NOW')\n${readLine}`
      const { output, status, complete } = await inShell(source, [
        { wait: 'READY', type: '\x1a' },
        { wait: 'NOT NOW', type: 'typed then\n' },
      ])
      expect({ status, complete, output }).toMatchObject({ status: 9, complete: true })
      expect(space.read('a')).toBe('typed then\n')
    })
  })

  it('a command that is refused leaves the terminal usable', async () => {
    const { output, status } = await onTerminal([...cliCommand, 'run', '--', './nothing'], [], {
      cwd: space.dir,
      env: space.env,
    })
    expect(status).toBe(127)
    expect(output).toContain('command not found')
  })
})
