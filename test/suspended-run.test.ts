/** A run that is suspended (Ctrl-Z, kill -STOP) answers all the same, while its command stays stopped; then it is suspended again. */
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type BackgroundRun, isRunning, startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell } from './support/built-cli.ts'
import { hasTerminal, onTerminal, type Step } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

const LOOK_MS = 10

let space: Workspace
useRuns(made => {
  space = made
})

const stateOf = (pid: number): string => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1]!

/** How often it has waited for something, a stop among it. */
const sleepsOf = (pid: number): number =>
  Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1])

async function until(what: () => boolean): Promise<void> {
  while (!what()) await pause(LOOK_MS)
}

function controlFile({ id }: BackgroundRun): string {
  const [timeline] = readdirSync(join(space.home, 'timelines'))
  return join(space.home, 'timelines', timeline!, 'runs', id, 'control.json')
}

const kinds = [{ tracer: 'none' }, { tracer: 'auto' }, { tracer: 'ptrace' }, { tracer: 'seccomp', exits: 'ptrace' }]

const title = hasTerminal ? 'after Ctrl-Z' : 'after Ctrl-Z (skipped: needs python3 for a pseudo-terminal)'
describe.skipIf(!hasTerminal).each(kinds)(`${title}, tracer $tracer $exits`, ({ tracer, exits }) => {
  /** The command has written a2 into `a`, and waits for a line; the next step begins when the shell says that it has stopped. */
  function inShell(steps: Step[], first = '') {
    const script = `${first}import os, sys\nopen("a", "w").write("a2")\nopen("../pid", "w").write(str(os.getpid()))\n`
    const program = join(space.base, 'program.py')
    writeFileSync(program, `${script}print("READY")\nline = sys.stdin.readline()\nopen("b", "w").write(line)\n`)
    return onTerminal(
      ['bash', '--norc', '-i'],
      [
        { wait: '\\$ ', type: `${savepointInShell} run -- python3 -u '${program}'\n` },
        { wait: 'READY', type: '\x1a' },
        { wait: 'Stopped', type: 'echo SUSP""ENDED\n' },
        ...steps,
      ],
      { cwd: space.dir, env: { ...space.env, SAVEPOINT_TRACER: tracer, SAVEPOINT_EXITS: exits }, timeoutSeconds: 20 },
    )
  }
  const states = 'ps -o stat= -p $(jobs -p),$(cat ../pid) | cut -c1 | tr "\\n" .'

  it('undo in the same shell stops it for good, and takes it back', async () => {
    const { output, complete } = await inShell([
      { wait: 'SUSPENDED', type: `${savepointInShell} undo; echo "now: $(cat a), $?"\n` },
      { wait: 'now: a1, 0', type: 'wait; jobs; echo "jobs: $?"; exit\n' },
      { wait: 'jobs: 0' },
    ])
    expect({ complete, output }).toMatchObject({ complete: true })
    expect(output).toContain('the run was stopped for `savepoint undo`')
  })

  it.each([
    ['gives the terminal back', 'termios.tcsetattr(0, termios.TCSADRAIN, modes)'],
    ['asks what to do', 'input("really? ")'],
  ])('also a full-screen program, which, told to end, %s', async (_, tidyUp) => {
    const first = `import signal, termios, tty
modes = termios.tcgetattr(0)
def end(*_):
    ${tidyUp}
    os._exit(143)
signal.signal(signal.SIGTERM, end)
tty.setcbreak(0)
`
    const { output, complete } = await inShell(
      [
        { wait: 'SUSPENDED', type: `${savepointInShell} undo; echo "now: $(cat a), $?"\n` },
        { wait: 'now: a1, 0', type: 'wait; jobs; echo "jobs: $?"; exit\n' },
        { wait: 'jobs: 0' },
      ],
      first,
    )
    expect({ complete, output }).toMatchObject({ complete: true })
  })

  it('fg goes on while somebody is being answered, to whom the shell has lost the job', async () => {
    const client = `
import glob, json, os, signal, socket, sys
control, = glob.glob(sys.argv[1] + '/timelines/*/runs/*/control.json')
peer = socket.socket(socket.AF_UNIX)
peer.connect(json.load(open(control))['socket'])
peer.sendall(b'{"hello":"control","wakes":true}\\n')
os.kill(int(sys.argv[2]), signal.SIGCONT)
print('HE' + 'LD', peer.recv(100) != b'', flush=True)
peer.recv(100)
`
    writeFileSync(join(space.base, 'client.py'), client)
    const { output, complete } = await inShell([
      { wait: 'SUSPENDED', type: `python3 ../client.py '${space.home}' $(jobs -p) &\n` },
      { wait: 'HELD True', type: 'fg %1\n' },
      { wait: 'program\\.py', type: 'typed after fg\n' },
      { wait: 'To undo', type: 'exit\n' },
    ])
    expect({ complete, output }).toMatchObject({ complete: true })
    expect(space.read('b')).toBe('typed after fg\n')
  })

  it('what keeps it running leaves both stopped, and fg goes on', async () => {
    const asked = ['snapshot -q', 'rollback $(cat ../run) --keep-running -q'].map(
      words => `${savepointInShell} ${words}`,
    )
    const { output, complete } = await inShell([
      {
        wait: 'SUSPENDED',
        type: `${savepointInShell} runs -q > ../run; ${asked.join(' && ')}; echo "now: $(cat a), $?"\n`,
      },
      { wait: 'now: a1, 0', type: `echo "states: $(${states})"\n` },
      { wait: 'states: [Tt]\\.[Tt]', type: 'fg\n' },
      { wait: 'program\\.py', type: 'typed after fg\n' },
      { wait: 'To undo', type: 'exit\n' },
    ])
    expect({ complete, output }).toMatchObject({ complete: true })
    expect(space.read('b')).toBe('typed after fg\n')
  })
})

describe('stopped by hand', () => {
  /** The command has written a2 into `a`, and waits for a line; both it and its supervisor are stopped then. */
  async function suspended(tracer = 'auto') {
    const run = await startRun(space, 'printf a2 > a; echo $$ > pid; READY; read x; echo "$x" > b', {
      args: ['--tracer', tracer],
    })
    const command = Number(space.read('pid'))
    run.child.kill('SIGSTOP')
    await until(() => stateOf(run.child.pid!) === 'T')
    process.kill(command, 'SIGSTOP')
    await until(() => /[Tt]/.test(stateOf(command)))
    return { run, command, areStopped: () => /T[Tt]/.test(stateOf(run.child.pid!) + stateOf(command)) }
  }

  async function goOn({ run, command }: { run: BackgroundRun; command: number }) {
    process.kill(command, 'SIGCONT')
    run.child.kill('SIGCONT')
    run.say('went on')
    expect(await run.ended).toMatchObject({ status: 0 })
    expect(space.read('b')).toBe('went on\n')
  }

  it.each(['auto', 'ptrace', 'none'])('rollback of the run, tracer %s', async tracer => {
    const { run, command } = await suspended(tracer)
    expect(savepoint(space, ['rollback', run.id])).toMatchObject({ status: 0 })
    expect(space.read('a')).toBe('a1')
    expect(await run.ended).toMatchObject({ stderr: expect.stringContaining('the run was stopped for') })
    expect(await isRunning(command)).toBe(false)
  })

  it.each(['auto', 'ptrace', 'none'])('with --keep-running, tracer %s', async tracer => {
    const both = await suspended(tracer)
    for (const args of [['rollback', both.run.id, '--keep-running'], ['trace'], ['ctl', 'snapshot', '{}']]) {
      expect(savepoint(space, args)).toMatchObject({ status: 0 })
      expect(both.areStopped()).toBe(true)
    }
    expect(space.read('a')).toBe('a1')
    await goOn(both)
  })

  it('its supervisor alone: it is stopped again, and the command has gone on', async () => {
    const run = await startRun(space, 'READY; while read x; do printf "$x" > a; done')
    run.child.kill('SIGSTOP')
    await until(() => stateOf(run.child.pid!) === 'T')
    expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: '' })
    expect(stateOf(run.child.pid!)).toBe('T')
    run.say('a2')
    await until(() => space.read('a') === 'a2')
    run.child.kill('SIGCONT')
    run.child.stdin!.end()
    expect(await run.ended).toMatchObject({ status: 0 })
  })

  /** A client that holds the run until it is ended; it is greeted when this returns. */
  async function wakeAndHold({ run }: { run: BackgroundRun }) {
    const socket = connect(JSON.parse(readFileSync(controlFile(run), 'utf8')).socket)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const lines = createInterface(socket)
    const held = once(
      lines.on('line', line => line.includes('held') && lines.emit('held')),
      'held',
    )
    await new Promise(resolve => socket.write('{"hello":"control","wakes":true}\n{"op":"hold"}\n', resolve))
    return { socket, held }
  }

  it('whoever asked is killed: both are stopped as before, and go on as ever', async () => {
    const both = await suspended()
    const { socket, held } = await wakeAndHold(both)
    both.run.child.kill('SIGCONT')
    await held
    expect(both.areStopped()).toBe(false)
    socket.destroy()
    await until(both.areStopped)
    await goOn(both)
  })

  it('whoever asked is gone before it is heard: the command stays stopped all the same', async () => {
    const both = await suspended()
    const { socket } = await wakeAndHold(both)
    socket.destroy()
    await once(socket, 'close')
    const before = sleepsOf(both.run.child.pid!)
    both.run.child.kill('SIGCONT')
    await until(() => sleepsOf(both.run.child.pid!) > before && both.areStopped())
    await goOn(both)
  })

  it('the command goes on meanwhile, as with fg: the supervisor does, too', async () => {
    const both = await suspended()
    const { socket, held } = await wakeAndHold(both)
    both.run.child.kill('SIGCONT')
    await held
    process.kill(both.command, 'SIGCONT')
    socket.destroy()
    both.run.say('went on')
    expect(await both.run.ended).toMatchObject({ status: 0 })
  })

  it('it cannot be reached: what the error says helps', async () => {
    const both = await suspended()
    rmSync(controlFile(both.run))
    for (const args of [['undo'], ['rollback', both.run.id]]) {
      const { status, stderr } = savepoint(space, args)
      expect(status).not.toBe(0)
      expect(stderr).toContain('`fg` in its shell wakes it')
      const [, words] = /`savepoint (rollback snap_\w+)`/.exec(stderr)!
      space.write('a', 'a2')
      expect(savepoint(space, words!.split(' '))).toMatchObject({ status: 0 })
      expect(space.read('a')).toBe('a1')
    }
    await goOn(both)
  })
})
