/** A command with eslogger beside it. eslogger runs on macOS only: here a stand-in prints its lines of real processes. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EsloggerCommand, type EsloggerOptions } from '../src/tracers/eslogger-command.ts'
import { probeTracers } from '../src/tracers/select.ts'
import type { TraceEvent } from '../src/tracers/trace-event.ts'
import { cgroups } from './support/helper-process.ts'
import { gated, isRoot } from './support/machine.ts'

const standIn = fileURLToPath(new URL('./support/eslogger-stand-in.ts', import.meta.url))
const probe = probeTracers().find(({ name }) => name === 'ebpf')!
const needs = isRoot ? `a kernel for ebpf: ${probe.detail}` : 'root'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-eslogger-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function program(script: string): string {
  const file = join(directory, 'eslogger')
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  return file
}

const optionsFor = ([program, ...args]: string[], events: TraceEvent[]): EsloggerOptions => ({
  start: () => spawn(program!, args, { cwd: directory, stdio: 'ignore' }),
  onEvent: event => void events.push(event),
  onBatch() {},
  onHelperDied() {},
})

gated(
  probe.works && cgroups !== undefined,
  `${needs}, cgroup2`,
  'a tree of processes, complete when it has ended',
  async () => {
    const node = `'${process.execPath}' --disable-warning=ExperimentalWarning`
    const logger = program(`[ "$*" = "exec fork exit" ] && exec ${node} '${standIn}' '${cgroups}'`)
    const events: TraceEvent[] = []
    const script = 'sh -c "/bin/false inner; exit 3"; sh -c "kill -KILL \\$\\$"; /bin/true last; exit 7'
    const command = new EsloggerCommand(optionsFor(['sh', '-c', script], events), logger)
    expect(await command.ended).toEqual({ code: 7, signal: undefined, survivors: false, left: [] })
    const executions = events.filter(event => event.type === 'exec')
    expect(executions).toMatchObject([
      { id: 1, pid: command.pid, ppid: process.pid, parent: 0, depth: 0, cwd: directory },
      { id: 2, parent: 1, depth: 1 },
      { id: 3, parent: 2, depth: 2, argv: ['/bin/false', 'inner'] },
      { id: 4, parent: 1, depth: 1 },
      { id: 5, parent: 1, depth: 1, argv: ['/bin/true', 'last'] },
    ])
    const ends = events.filter(event => event.type === 'exit').map(({ id, code, signal }) => [id, code ?? signal])
    expect(ends).toEqual([
      [3, 1],
      [2, 3],
      [4, 'SIGKILL'],
      [5, 0],
      [1, 7],
    ])
  },
)

test('one that tells nothing: the command is not started', async () => {
  const marker = join(directory, 'started')
  const command = new EsloggerCommand(optionsFor(['touch', marker], []), program('exit 1'))
  await expect(command.ended).rejects.toMatchObject({
    code: 'EPERM',
    message: expect.stringMatching(/full disk access/),
  })
  expect(command.pid).toBeUndefined()
})
