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
