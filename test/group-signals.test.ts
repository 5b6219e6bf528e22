/** A signal to the process group of a run reaches the command once, as without us; one to us alone is passed on, once. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { type BackgroundRun, startRun, useRuns } from './support/background-run.ts'
import { builtCommand } from './support/built-cli.ts'
import { hasTerminal, onTerminal } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

/** One that was passed on as well would have come by then. */
const SECOND_MS = 300
const title = hasTerminal ? 'signals' : 'signals (skipped: needs python3)'

let space: Workspace
useRuns(given => {
  space = given
})

/** Writes the name of each signal that it gets into the file `got`, until a moment after it got a line. */
const counting = (first = '') => `
import os, signal, sys, time
${first}
def got(number, _):
    with open('got', 'a') as file: file.write(signal.Signals(number).name + '\\n')
    print('GOT')
for name in ('SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'): signal.signal(getattr(signal, name), got)
open('counts', 'w').write(str(os.getpgrp()))
print('COUNTS')
sys.stdin.readline()
time.sleep(${SECOND_MS / 1000})
`

const got = () => (space.read('got') ?? '').split('\n').filter(Boolean)

async function startCounting(options: { args?: string[]; before?: string[]; first?: string }): Promise<BackgroundRun> {
  space.write('count.py', counting(options.first))
  const live = await startRun(space, 'READY; exec python3 count.py', { ...options, spawn: { detached: true } })
  await vi.waitFor(() => expect(existsSync(space.at('counts'))).toBe(true), 10_000)
  return live
}

async function send(pid: number, signal: NodeJS.Signals): Promise<void> {
  const before = got()
  process.kill(pid, signal)
  await vi.waitFor(() => expect(got()).not.toEqual(before), 5000)
  await pause(SECOND_MS)
  expect(got()).toEqual([...before, signal])
}

/** Of the processes in a group. */
const namesIn = (group: number) =>
  readdirSync('/proc').flatMap(pid => {
    const [, name, its] = /^\d+ \((.*)\) \S \d+ (\d+) /s.exec(statOf(pid)) ?? []
    return Number(its) === group ? [name] : []
  })

function statOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return ''
  }
}

async function end(live: BackgroundRun): Promise<void> {
  live.say('')
  expect(await live.ended).toMatchObject({ status: 0 })
}

describe.skipIf(!hasTerminal)(title, () => {
  it.each(['auto', 'ptrace', 'none'])(
    'to the group, and to us alone right after: once each, tracer %s',
    async tracer => {
      const live = await startCounting({ args: ['--tracer', tracer] })
      const pid = live.child.pid!
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'] as const) {
        await send(-pid, signal)
        await send(pid, signal)
        await send(-pid, signal)
      }
      for (const signal of ['SIGQUIT', 'SIGHUP'] as const) await send(-pid, signal)
      await end(live)
    },
  )

  it('a command in a process group of its own has it from us', async () => {
    const live = await startCounting({ first: 'os.setpgid(0, 0)' })
    expect(space.read('counts')).not.toBe(String(live.child.pid))
    await send(-live.child.pid!, 'SIGINT')
    await send(live.child.pid!, 'SIGTERM')
    await end(live)
  })

  it('timeout, which signals its child and then the group', async () => {
    const live = await startCounting({ before: ['timeout', '300'] })
    // As when the time is over.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) await send(live.child.pid!, signal)
    live.say('')
    await live.ended
  })

  it('who watches the group for that is none of the run, and is gone with the command', async () => {
    const script = 'sleep 300 <&- >&- 2>&- & echo $! > survivor; READY; read end'
    const live = await startRun(space, script, { spawn: { detached: true } })
    expect(namesIn(live.child.pid!)).toContain('savepoint-group')
    live.say('')
    const { stderr } = await live.ended
    const left = namesIn(live.child.pid!)
    process.kill(Number(space.read('survivor')), 'SIGKILL')
    expect(left).toEqual(['sleep'])
    // It may not have executed that yet when it is named.
    expect(stderr).toMatch(/savepoint: (sleep|sh) \(/)
  })

  it('to a job that is stopped: once, when it goes on', async () => {
    space.write('count.py', counting())
    const line = [...builtCommand, 'run', '--', 'python3', '-u', 'count.py'].map(word => `'${word}'`).join(' ')
    const { output, complete } = await onTerminal(
      ['sh', '-i'],
      [
        { wait: '\\$ ', type: `${line}\n` },
        { wait: 'COUNTS', type: '\x1a' },
        // Longer than what was seen of the group is remembered.
        { wait: 'Stopped|Suspended', type: 'kill -TERM %1; sleep 2.5; echo SL""EPT\n' },
        { wait: 'SLEPT', type: 'fg\n' },
        { wait: 'GOT', type: '\n' },
        { wait: 'To undo', type: 'exit\n' },
      ],
      { cwd: space.dir, env: space.env },
    )
    expect({ output, complete }).toMatchObject({ complete: true })
    expect(got()).toEqual(['SIGTERM'])
  })
})
