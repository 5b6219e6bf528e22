/** Lines as `eslogger exec fork exit` of macOS 13 to 15 prints them, with the fields that recorded ones have. */
import { describe, expect, test } from 'vitest'
import { EsloggerParser } from './eslogger.ts'
import { probeEslogger } from './eslogger-command.ts'
import type { TraceEvent } from './trace-event.ts'

let number = 0
const token = (pid: number) => ({
  pid,
  pidversion: pid * 3,
  asid: 100004,
  auid: 501,
  euid: 501,
  ruid: 501,
  egid: 20,
  rgid: 20,
})
const file = (path: string) => ({
  path,
  path_truncated: false,
  stat: { st_mode: 33261, st_size: 1, st_ino: 7, st_dev: 16777234 },
})
const process_ = (pid: number, ppid: number, program: string) => ({
  audit_token: token(pid),
  parent_audit_token: token(ppid),
  responsible_audit_token: token(300),
  ppid,
  original_ppid: ppid,
  group_id: pid,
  session_id: 300,
  executable: file(program),
  start_time: '2025-03-01T10:00:00.000001Z',
  signing_id: 'com.apple.sh',
  team_id: null,
  cdhash: '0'.repeat(40),
  codesigning_flags: 570522385,
  is_platform_binary: true,
  is_es_client: false,
  tty: file('/dev/ttys001'),
})

function line(type: number, pid: number, event: object, time = '2025-03-01T10:00:01.250000500Z'): string {
  number++
  const message = {
    schema_version: 1,
    version: 9,
    event_type: type,
    action_type: 1,
    action: { result: { result_type: 0, result: { auth: 0 } } },
    time,
    mach_time: 123456789,
    thread: { thread_id: 4242 },
    seq_num: number,
    global_seq_num: number,
    process: process_(pid, 1, '/bin/zsh'),
    event,
  }
  // As it is printed: slashes are escaped.
  return `${JSON.stringify(message).replaceAll('/', '\\/')}\n`
}

const fork = (pid: number, child: number) => line(11, pid, { fork: { child: process_(child, pid, '/bin/sh') } })
const exit = (pid: number, stat: number) => line(15, pid, { exit: { stat } })
const exec = (pid: number, ppid: number, args: string[], more: object = {}) =>
  line(9, pid, {
    exec: {
      target: process_(pid, ppid, `/usr/bin/${args[0]!.split('/').at(-1)}`),
      args,
      env: ['PATH=/usr/bin'],
      fds: [{ fd: 0, fdtype: 1 }],
      cwd: file('/private/tmp/w'),
      script: null,
      dyld_exec_path: args[0],
      last_fd: 2,
      image_cputype: 16777228,
      image_cpusubtype: 2,
      ...more,
    },
  })

function parse(text: string, pid = 100): TraceEvent[] {
  const events: TraceEvent[] = []
  const parser = new EsloggerParser(event => void events.push(event))
  parser.watch(pid)
  parser.push(Buffer.from(text))
  return events
}

describe('lines of eslogger', () => {
  test('the tree below what is watched, and nothing else', () => {
    const events = parse(
      [
        exec(100, 1, ['sh', '-c', 'make']),
        exec(900, 1, ['mdworker']),
        fork(100, 101),
        fork(900, 901),
        exec(101, 100, ['make', '-j2']),
        exec(901, 900, ['other']),
        fork(101, 102),
        exec(102, 101, ['cc', 'ä.c']),
        exit(102, 3 << 8),
        exit(901, 0),
        exec(101, 100, ['true']),
        exit(101, 0),
        exit(100, 15),
      ].join(''),
    )
    expect(events).toEqual([
      expect.objectContaining({ type: 'exec', id: 1, pid: 100, parent: 0, depth: 0, argv: ['sh', '-c', 'make'] }),
      expect.objectContaining({ id: 2, pid: 101, ppid: 100, parent: 1, depth: 1, replaces: undefined }),
      expect.objectContaining({ id: 3, parent: 2, depth: 2, argv: ['cc', '\xc3\xa4.c'], cwd: '/private/tmp/w' }),
      expect.objectContaining({ type: 'exit', id: 3, code: 3, signal: undefined }),
      expect.objectContaining({ id: 4, replaces: 2, parent: 1, depth: 1, program: '/usr/bin/true' }),
      expect.objectContaining({ type: 'exit', id: 4, code: 0 }),
      expect.objectContaining({ type: 'exit', id: 1, code: undefined, signal: 'SIGTERM' }),
    ])
  })

  test('times keep their fractions', () => {
    const [event] = parse(exec(100, 1, ['true']))
    expect(event).toMatchObject({ at: Date.parse('2025-03-01T10:00:01Z') + 250.0005 })
  })

  test('a script: itself, without its interpreter', () => {
    const script = { script: file('/private/tmp/w/run.sh'), target: process_(100, 1, '/bin/bash') }
    const [event] = parse(exec(100, 1, ['/bin/bash', '-e', './run.sh', 'a', 'run.sh'], script))
    expect(event).toMatchObject({ program: '/private/tmp/w/run.sh', argv: ['./run.sh', 'a', 'run.sh'] })
  })

  test('more arguments than are kept', () => {
    const [event] = parse(exec(100, 1, ['true', 'x'.repeat(40_000), 'y']))
    expect(event).toMatchObject({ truncated: true, argv: ['true', expect.stringMatching(/^x{32000,32768}$/)] })
  })

  test('a gap in the numbers, and lines that are none, count as lost; an unknown fork does not lose the child', () => {
    const first = exec(100, 1, ['sh'])
    number += 4
    const events = parse(`${first}${exec(103, 100, ['late'])}eslogger: something\n${line(9, 100, { other: {} })}`)
    expect(events).toMatchObject([
      { type: 'exec', id: 1 },
      { type: 'lost', count: 4 },
      { type: 'exec', id: 2, parent: 1, depth: 1, argv: ['late'] },
      { type: 'lost', count: 1 },
      { type: 'lost', count: 1 },
    ])
  })

  test('whatever the pieces that they come in, and an endless line does not fill the memory', () => {
    const bytes = Buffer.from(exec(100, 1, ['ä', 'ö']) + exit(100, 9))
    const events: TraceEvent[] = []
    const parser = new EsloggerParser(event => void events.push(event))
    parser.watch(100)
    for (const byte of bytes) parser.push(Buffer.from([byte]))
    expect(events).toMatchObject([{ argv: ['\xc3\xa4', '\xc3\xb6'] }, { signal: 'SIGKILL' }])
    for (let i = 0; i < 20; i++) parser.push(Buffer.alloc(1024 * 1024, 'x'))
    parser.push(Buffer.from(`\n${fork(1, 2)}`))
    expect(events.slice(2)).toEqual([{ type: 'lost', pid: 0, count: 1, why: 'overflow' }])
  })

  test.each(['null', '[]', '{}', '1', '{"process":1}', '{"event":{"exec":{}},"process":{"audit_token":{"pid":100}}}'])(
    'what makes no sense is lost, and no error: %s',
    text => expect(parse(`${text}\n`)).toEqual([{ type: 'lost', pid: 0, count: 1, why: 'overflow' }]),
  )
})

test('the probe says what is missing', () => {
  expect(probeEslogger('linux').detail).toBe('this is for macOS')
  const here = probeEslogger('darwin', '/no/such/eslogger')
  expect(here).toMatchObject({
    works: false,
    detail: expect.stringMatching(process.getuid!() === 0 ? /does not exist/ : /needs root/),
  })
})
