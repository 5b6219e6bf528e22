/** T4: the terminal is the command's. Keys, window size and job control work as without us. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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

  it('Ctrl-Z and fg: both stop, both go on', { retry: 2 }, async () => {
    const source = `
import signal, sys
signal.signal(signal.SIGCONT, lambda *_: print('GOING ON'))
print('READY')
line = sys.stdin.readline()
open('a', 'w').write(line)
`
    writeFileSync(program, source)
    const line = [...cliCommand, 'run', '--', 'python3', '-u', program].map(word => `'${word}'`).join(' ')
    const { output, status, complete } = await onTerminal(
      ['sh', '-i'],
      [
        { wait: '\\$ ', type: `${line}\n` },
        { wait: 'READY', type: '\x1a' },
        { wait: 'Stopped|Suspended', type: 'echo "in between"\n' },
        { wait: 'in between\\r?\\n', type: 'fg\n' },
        // Said by the program itself: it is in the foreground again, and whatever fg did to the terminal is done.
        { wait: 'GOING ON', type: 'typed after fg\n' },
        { wait: 'To undo', type: 'exit 9\n' },
      ],
      { cwd: space.dir, env: space.env },
    )
    expect({ status, complete, output }).toMatchObject({ status: 9, complete: true })
    expect(space.read('a')).toBe('typed after fg\n')
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
