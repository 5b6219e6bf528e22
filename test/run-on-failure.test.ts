/** `run --on-failure`: what a command did that failed is kept, taken back, or asked about. Its exit code is the answer. */
import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { builtCommand, savepoint } from './support/built-cli.ts'
import { hasTerminal, onTerminal } from './support/terminal.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

const failing = ['--', 'sh', '-c', 'printf a2 > a; touch b; exit 6']
const state = () => [space.read('a'), space.read('b')]

it('rollback takes it back, and undo of that brings it again', () => {
  const { status, stderr } = savepoint(space, ['run', '--on-failure', 'rollback', ...failing])
  expect(status).toBe(6)
  expect(state()).toEqual(['a1', undefined])
  expect(stderr).toMatch(/exit 6.*\n(.*\n)*Took it back, to snap_\w+[\s\S]*To undo: savepoint undo/)
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(state()).toEqual(['a2', ''])
})

it("also with -q it says what was perhaps somebody else's", () => {
  spawn('sh', ['-c', 'until [ -e own ]; do sleep 0.02; done; echo hand > a'], { cwd: space.dir })
  const script = 'touch own; until grep -q hand a; do sleep 0.02; done; echo run > a; exit 6'
  const { stderr } = savepoint(space, ['run', '-q', '--on-failure', 'rollback', '--', 'sh', '-c', script])
  expect(stderr).toMatch(
    /^May also hold somebody else's edit, made while the run went on: a\nTo have that back: .*\nVersions .*\n$/,
  )
  expect(space.read('a')).toBe('a1')
})

it('also with -q it says what it left alone, and nothing else', () => {
  expect(savepoint(space, ['run', '-q', '--on-failure', 'rollback', ...failing])).toMatchObject({
    status: 6,
    stderr: '',
  })
  space.write('.gitignore', '*.db\n')
  space.sh('git init -q')
  space.write('app.db', 'theirs')
  const { stderr } = savepoint(space, [
    'run',
    '-q',
    '--on-failure',
    'rollback',
    '--',
    'sh',
    '-c',
    'mv app.db a; exit 6',
  ])
  expect(stderr).toMatch(/^Left alone \(1\):\n {2}a: the run moved it there.*\nTo put it back: mv -n a app\.db\n$/)
  expect(space.read('a')).toBe('theirs')
})

it('with --json it says what was taken back', () => {
  const { status, stderr } = savepoint(space, ['run', '--json', '--on-failure', 'rollback', ...failing])
  const result = JSON.parse(stderr.trim().split('\n').at(-1)!)
  expect([status, result.exit_code]).toEqual([6, 6])
  expect(result.taken_back.files).toMatchObject({ deleted: 1, replaced: 1 })
})

it('keep is the default', () => {
  expect(savepoint(space, ['run', ...failing]).status).toBe(6)
  expect(state()).toEqual(['a2', ''])
})

it('a command that succeeds is not taken back, nor one that changed nothing', () => {
  expect(savepoint(space, ['run', '--on-failure', 'rollback', '--', 'sh', '-c', 'printf a2 > a']).status).toBe(0)
  expect(space.read('a')).toBe('a2')
  const { status, stderr } = savepoint(space, ['run', '--on-failure', 'rollback', '--', 'false'])
  expect(status).toBe(1)
  expect(stderr).not.toContain('Took it back')
})

it('a death by signal is a failure', () => {
  const script = ['--', 'sh', '-c', 'printf a2 > a; kill -KILL $$']
  expect(savepoint(space, ['run', '--on-failure', 'rollback', ...script]).status).toBe(137)
  expect(space.read('a')).toBe('a1')
})

it('where nobody can be asked it is kept, and that is said', () => {
  const { status, stderr } = savepoint(space, ['run', '--on-failure', 'ask', ...failing])
  expect(status).toBe(6)
  expect(stderr).toContain('nobody can be asked here: what the run did is kept')
  expect(state()).toEqual(['a2', ''])
})

it('another word is refused', () => {
  expect(savepoint(space, ['run', '--on-failure', 'maybe', ...failing])).toMatchObject({ status: 2 })
  expect(state()).toEqual(['a1', undefined])
})

describe.skipIf(!hasTerminal)(hasTerminal ? 'on a terminal' : 'on a terminal (skipped: needs python3)', () => {
  it.each([
    ['y\n', ['a1', undefined]],
    ['n\n', ['a2', '']],
    ['\x04', ['a2', '']],
  ])('ask, answered with %j', async (answer, expected) => {
    const { status, output, complete } = await onTerminal(
      [...builtCommand, 'run', '--on-failure', 'ask', ...failing],
      [
        {
          wait: ' M a\\s+A b\\s+\\S*The command failed \\(exit 6\\) after it changed 2 paths\\. Take it back\\? \\[y/N\\] ',
          type: answer,
        },
      ],
      { cwd: space.dir, env: space.env },
    )
    expect({ status, complete, output }).toMatchObject({ status: 6, complete: true })
    expect(state()).toEqual(expected)
    expect(output.match(/A b\b/g)).toHaveLength(1)
  })

  it('what is asked about stands on lines of its own, also where progress was shown', async () => {
    const slow = ['--', 'sh', '-c', 'printf a2 > a; sleep 1; exit 6']
    const { output } = await onTerminal(
      [...builtCommand, 'run', '--on-failure', 'ask', ...slow],
      [{ wait: 'Take it back\\? \\[y/N\\] ', type: 'n\n' }],
      { cwd: space.dir, env: space.env },
    )
    expect(output).toMatch(/(?:^|\n|\x1b\[K) +M a\r?\n/)
    expect(output).not.toMatch(/capturing[^\r\n]*files(?![^\r\n]*\x1b\[K\r\x1b\[K)[^\r\n]* M a/)
  })
})
