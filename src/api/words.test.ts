import { expect, it } from 'vitest'
import { checkInput, findOperation } from './table.ts'
import { inputFromWords } from './words.ts'

it.each([
  ['rollback', ['snapshot=good', 'dry_run=true', 'paths=a'], { snapshot: 'good', dry_run: true, paths: ['a'] }],
  [
    'rollback',
    ['snapshot=good', 'dry-run=false', 'paths=a=b', 'paths=c'],
    { snapshot: 'good', dry_run: false, paths: ['a=b', 'c'] },
  ],
  ['snapshots', ['limit=5'], { limit: 5 }],
  ['snapshot', ['label='], { label: '' }],
  ['exec', ['cmd=ls -l'], { cmd: 'ls -l' }],
  ['exec', ['cmd=ls', 'cmd=-l'], { cmd: ['ls', '-l'] }],
  ['exec', ['{"cmd":["a b"]}', 'cwd=sub'], { cmd: ['a b'], cwd: 'sub' }],
])('%s %j', (name, words, input) => {
  expect(inputFromWords(findOperation(name), words)).toEqual(input)
})

it('what is no number, or no truth, is left for the check to refuse', () => {
  const operation = findOperation('snapshots')
  expect(() => checkInput(operation, inputFromWords(operation, ['limit=many']))).toThrow(/"limit"/)
  const rollback = findOperation('rollback')
  expect(() => checkInput(rollback, inputFromWords(rollback, ['snapshot=x', 'all=maybe']))).toThrow(/"all"/)
})

it.each(['__proto__=1', 'constructor=1', '__proto__=a'])('%s is a parameter that does not exist', word => {
  const operation = findOperation('show')
  expect(() => checkInput(operation, inputFromWords(operation, [word]))).toThrow(/it has no parameter "(__proto__|con)/)
})

it('words without a name, of what starts a command, are told where that stands', () => {
  expect(() => inputFromWords(findOperation('exec'), ['npm', 'test'])).toThrow(
    expect.objectContaining({ hint: expect.stringContaining('ctl exec -- npm') }),
  )
})
