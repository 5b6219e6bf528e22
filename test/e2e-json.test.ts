/** With --json, whatever the verb: one JSON value on stdout; an error is one on stderr, and stdout stays empty. */
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { buildProgram } from '../src/cli/program.ts'
import { commandNames } from '../src/cli/usage.ts'
import { savepoint } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

const binary = Buffer.from([0xff, 0, 10])

let space: Workspace
/** One after the other they make a history in which each has something to say. */
beforeAll(() => {
  space = new Workspace()
  space.write('a.txt', 'one é\n')
  space.write('bin', binary)
  symlinkSync('a.txt', space.at('link'))
  savepoint(space, ['snapshot', '-m', 'first'])
  savepoint(space, ['run', '-q', 'true'])
  savepoint(space, ['record', '-q', '-o', '../recorded', '--', 'sh', '-c', 'cat a.txt; echo > made; rm made'])
})
afterAll(() => space.remove())

/** Each verb at least once, in an order in which all of them work. */
const calls: string[][] = [
  ['snapshot', '-m', 'second'],
  ['commit'],
  ['status'],
  ['snapshots'],
  ['log'],
  ['log', '--operations'],
  ['show'],
  ['show', 'first', '--stat', '-p'],
  ['show', 'first', 'a.txt'],
  ['diff'],
  ['diff', 'first', '--name-only'],
  ['diff', 'first', 'HEAD', '--stat'],
  ['changes'],
  ['history', 'a.txt'],
  ['coverage', 'a.txt'],
  ['runs'],
  ['trace'],
  ['events'],
  ['trust'],
  ['why', 'a.txt'],
  ['operations'],
  ['tag', 'good'],
  ['tag'],
  ['undo'],
  ['redo'],
  ['rollback', 'first', '--dry-run'],
  ['checkout', 'first'],
  ['restore', 'first', '--to', '../then'],
  ['revert', 'a.txt'],
  ['commit'],
  ['branches'],
  ['head'],
  ['compact', 'first', 'second', '-m', 'both'],
  ['tag', '--delete', 'good'],
  ['delete', 'both'],
  ['undo'],
  ['export', 'HEAD', '../x.tar.gz'],
  ['import', '../x.tar.gz', '-m', 'back'],
  ['prune', '--dry-run'],
  ['prune'],
  ['gc'],
  ['verify'],
  ['purge', 'bin', '--yes'],
  ['doctor'],
  ['demo', '--fast'],
  ['ctl'],
  ['ctl', 'head'],
  ['completion', 'bash'],
  ['--version'],
  ['-V'],
  ['--help'],
  ['help'],
  ['help', 'run'],
  ['run', '--help'],
  ['undo', '-h'],
  // Its result is on stderr.
  ['record', '--help'],
  ['bundle', 'show', '../recorded'],
  ['bundle', 'diff', '../recorded'],
  ['bundle', 'verify', '../recorded'],
  // Its output is the protocol's.
  ['mcp', '--help'],
  ['connect', 'claude', '--print'],
  ['hook', '--help'],
  [],
]

it('is tried with every verb below', () => {
  // A daemon does not end: test/daemon.test.ts reads its JSON.
  const tried = new Set([...calls.map(([verb]) => verb), 'daemon'])
  expect(commandNames(buildProgram()).filter(name => !tried.has(name))).toEqual([])
})

test.each(calls.map(args => [args.join(' '), args] as const))('savepoint %s --json', (_, args) => {
  for (const line of [
    [...args, '--json'],
    [...args, '--json', '-q'],
  ].slice(0, isRepeatable(args) ? 2 : 1)) {
    const { status, stdout, stderr } = savepoint(space, line)
    expect({ line, status, stderr: stderr.includes('error') }).toEqual({ line, status: 0, stderr: false })
    expect(() => JSON.parse(stdout)).not.toThrow()
    for (const notice of stderr.split('\n').filter(Boolean)) expect(JSON.parse(notice)).toHaveProperty('notice')
  }
})

/** What a second call would find done, or take back. */
const isRepeatable = ([verb]: string[]) =>
  !['snapshot', 'undo', 'redo', 'tag', 'delete', 'compact', 'export', 'purge', 'demo', 'restore'].includes(verb ?? '')

test.each([
  [['show', 'nothing'], 12],
  [['show', 'HEAD', 'nothing'], 12],
  [['show', 'HEAD', '.'], 12],
  [['rollback', 'nothing'], 12],
  [['rollback'], 2],
  [['revert', '../outside'], 2],
  [['purge', 'a.txt'], 2],
  [['help', 'nothing'], 2],
  [['help', 'tournament'], 13],
  [['tournament'], 13],
  [['nothing'], 2],
  [['snapshots', '--nothing'], 2],
  [['completion', 'csh'], 2],
  [['run'], 2],
  [['run', '--', 'no-such-program'], 127],
  [['status', '-t', '/nowhere/at/all'], 1],
])('savepoint %j --json: an error is JSON, too', (args, status) => {
  const result = savepoint(space, ['--json', ...args])
  expect({ status: result.status, stdout: result.stdout }).toEqual({ status, stdout: '' })
  const lines = result.stderr.split('\n').filter(Boolean)
  expect(Object.keys(JSON.parse(lines.at(-1)!).error)).toEqual(['code', 'message', 'hint', 'data'])
})

describe('what it says', () => {
  const json = (...args: string[]) => JSON.parse(savepoint(space, [...args, '--json']).stdout)

  it('show SNAP PATH: what is known of the file, and its content as text or base64', () => {
    const fresh = new Workspace()
    try {
      fresh.write('a.txt', 'one é\n')
      fresh.write('bin', binary)
      symlinkSync('a.txt', fresh.at('link'))
      const show = (path: string) => JSON.parse(savepoint(fresh, ['show', 'HEAD', path, '--json']).stdout)
      const { id } = JSON.parse(savepoint(fresh, ['snapshot', '--json']).stdout)
      expect(Object.keys(show('a.txt'))).toEqual([
        ...['snapshot', 'path', 'type', 'mode', 'uid', 'gid', 'size', 'mtime_ns', 'digest', 'link_target', 'reason'],
        ...['encoding', 'content'],
      ])
      expect(show('a.txt')).toMatchObject({
        snapshot: id,
        path: 'a.txt',
        size: 7,
        encoding: 'utf-8',
        content: 'one é\n',
      })
      expect(show('bin')).toMatchObject({ encoding: 'base64', content: binary.toString('base64'), size: 3 })
      expect(show('link')).toMatchObject({ type: 'link', link_target: 'a.txt', encoding: 'utf-8', content: 'a.txt' })
    } finally {
      fresh.remove()
    }
  })

  it('help and version', () => {
    expect(json('--version')).toEqual({ name: 'savepoint', version: expect.stringMatching(/^\d/) })
    const all = json('help')
    expect(all.commands.map((one: { name: string }) => one.name)).toEqual(expect.arrayContaining(['run', 'undo']))
    expect(json()).toEqual(all)
    expect(json('--help')).toEqual(all)
    const run = json('help', 'run')
    expect(Object.keys(run)).toEqual([
      ...['name', 'aliases', 'summary', 'description', 'usage', 'arguments', 'options', 'examples'],
    ])
    expect(run.options.map((option: { flags: string }) => option.flags)).toContain('--unprotected')
    expect(json('run', '--help')).toEqual(run)
  })

  it('help for people: without a verb on stdout; of an unknown one an error', () => {
    const help = savepoint(space, ['--help']).stdout
    expect(savepoint(space, ['-q'])).toMatchObject({ status: 0, stdout: help, stderr: '' })
    expect(savepoint(space, ['help', 'rolback'])).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('unknown command "rolback"\n  hint: Did you mean rollback?'),
    })
  })

  it('a run keeps stdout for its command: its own JSON is the last line of stderr', () => {
    const { stdout, stderr } = savepoint(space, ['run', '--json', '--', 'echo', 'out'])
    expect(stdout).toBe('out\n')
    expect(JSON.parse(stderr.trim().split('\n').at(-1)!)).toMatchObject({ exit_code: 0 })
    expect(existsSync(join(space.base, 'then'))).toBe(true)
  })
})
