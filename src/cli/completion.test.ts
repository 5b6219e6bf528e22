import { expect, it, test } from 'vitest'
import { planCompletion } from './completion-plan.ts'
import { completionScripts, shells } from './completion-scripts.ts'
import { buildProgram } from './program.ts'

const program = buildProgram()
const plan = (...words: string[]) => planCompletion(program, words)
const values = (...words: string[]) => plan(...words).candidates.map(({ value }) => value)

test.each([
  [['roll'], ['rollback']],
  [['snap'], ['snapshot', 'snapshots']],
  [['-t', '/x', 'und'], ['undo']],
  [['help', 'ver'], ['verify']],
  [['rollback', '--dr'], ['--dry-run']],
  [['snapshot', '-'], expect.arrayContaining(['-m', '--label', '-q', '--json', '--help'])],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['nonsense', ''], []],
])('%j offers %j', (words, wanted) => expect(values(...words)).toEqual(wanted))

it('does not offer what is hidden or for later', () => {
  expect(values('')).toEqual(expect.arrayContaining(['run', 'undo', 'checkout', 'restore', 'commit']))
  expect(values('')).not.toEqual(expect.arrayContaining(['__complete']))
  expect(values('tourn')).toEqual([])
})

test.each([
  [['rollback', ''], ['snapshots', 'tags', 'runs'], undefined],
  [['checkout', 'x'], ['snapshots', 'tags', 'runs'], undefined],
  [['rollback', 'good', '--', ''], [], 'files'],
  [['rollback', 'good', '--run', ''], ['runs'], undefined],
  [['rollback', 'good', '--to', ''], [], 'dirs'],
  [['rollback', '--to=/t'], [], 'dirs'],
  [['rollback', '--to', '=', '/t'], [], 'dirs'],
  [['revert', ''], [], 'files'],
  [['revert', 'a', 'b', ''], [], 'files'],
  [['revert', 'a', '--from', ''], ['snapshots', 'tags'], undefined],
  [['diff', ''], ['snapshots', 'tags'], 'files'],
  [['diff', 'a', 'b', ''], [], 'files'],
  [['show', 'good', ''], [], 'files'],
  [['delete', 'a', 'b', ''], ['snapshots', 'tags'], undefined],
  [['run', '--', ''], [], 'command'],
  [['run', 'make', '-'], [], 'files'],
  [['snapshots', ''], ['runs'], undefined],
  [['snapshot', '-m', ''], [], undefined],
  [['undo', ''], [], undefined],
  [['-t', ''], [], 'dirs'],
])('%j asks for %j and lets the shell complete %s', (words, names, shell) => {
  expect(plan(...words)).toMatchObject({ names, shell })
})

it('reads what is typed as the shell would', () => {
  expect(plan('show', 'before\\ the').typed).toBe('before the')
  expect(plan('show', '"before the').typed).toBe('before the')
})

test.each(shells)('the script for %s asks the program and knows all three directives', shell => {
  const script = completionScripts[shell]
  expect(script).toContain('__complete --')
  for (const directive of [':files', ':dirs', ':command']) expect(script).toContain(directive)
  expect(script).not.toContain('undefined')
})
