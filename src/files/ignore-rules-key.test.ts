/** The key of a directory's rules, by which a capture knows that nothing was decided otherwise. */
import { expect, test } from 'vitest'
import type { Raw } from '../model/raw-path.ts'
import type { Present } from './ignore-rules.ts'
import { file, presentIn, rulesOf, type Setting, type Tree } from './rules-test-tree.ts'

const none: Present = { gitignore: false, savepointignore: false }

test('the key changes with whatever changes verdicts, and with nothing else', () => {
  const base: Tree = { '.gitignore': '*.o\n', d: { '.gitignore': '/x\n' } }
  const keysOf = (tree: Tree, setting: Setting = {}) => {
    const root = rulesOf(tree, setting)
    return {
      root: root.key,
      d: root.enter('d', presentIn(tree.d as Tree, 'd', setting)).key,
      e: root.enter('e', none).key,
    }
  }
  const before = keysOf(base)
  expect(keysOf(base)).toEqual(before)
  expect(before.e).toBe(before.root)
  expect(before.d).not.toBe(before.root)

  const deeper = keysOf({ ...base, d: { '.gitignore': '/y\n' } })
  expect(deeper).toMatchObject({ root: before.root, e: before.e })
  expect(deeper.d).not.toBe(before.d)

  const differs: Setting[] = [
    { config: { additional: ['x'] } },
    { config: { keep: ['x'] } },
    { config: { ignoreGitignore: true } },
    { outer: { globalExcludes: file('/g', 'x') } },
    { git: { '': { infoExclude: file('i', 'x') } } },
    { git: { '': { trackedIgnored: new Set(['a.o']) } } },
  ]
  for (const setting of differs) expect(keysOf(base, setting).root, JSON.stringify(setting)).not.toBe(before.root)

  const tracked = keysOf(base, { git: { '': { trackedIgnored: new Set(['d/a.o']) } } })
  const plain = keysOf(base, { git: { '': {} } })
  expect(tracked.root).not.toBe(plain.root)
  expect(tracked.d).not.toBe(plain.d)
  expect(tracked.e).toBe(plain.e)
})

test('the key of a directory without patterns tells which tracked paths an ignore file further below excludes', () => {
  const keysWith = (...tracked: Raw[]) => {
    const root = rulesOf({}, { git: { '': { trackedIgnored: new Set(tracked) } } })
    return { root: root.key, d: root.enter('d', none).key, e: root.enter('e', none).key }
  }
  const [one, two] = [keysWith('d/x/a'), keysWith('d/x/a', 'd/x/b')]
  expect([two.root === one.root, two.d === one.d, two.e === one.e]).toEqual([false, false, true])
})

test('where patterns look at paths, two directories do not share a key', () => {
  const root = rulesOf({ '.gitignore': '/a/x\n' })
  expect(root.enter('a', none).key).not.toBe(root.enter('b', none).key)
})

test('without any pattern the key is the same everywhere', () => {
  const root = rulesOf({ '.gitignore': '# nothing\n' })
  expect(root.key).toBe(rulesOf({}).key)
  expect(root.enter('a', none).enter('b', none).key).toBe(root.key)
})

test('enterKnown gives the same verdicts and reads only when asked for one', () => {
  const tree = { '.gitignore': '*.o\n', d: { '.gitignore': '/x\n!k.o\n', e: {} } }
  const reads: Raw[] = []
  const read = (path: Raw) => {
    reads.push(path)
    return Buffer.from(path === '.gitignore' ? tree['.gitignore'] : tree.d['.gitignore'])
  }
  const present = { gitignore: true, savepointignore: false }
  const { key } = rulesOf(tree, { read }).enter('d', present)
  reads.length = 0
  const known = rulesOf(tree, { read }).enterKnown('d', present, key)
  const below = known.enterKnown('e', none, known.enter('e', none).key)
  expect(known.key).toBe(key)
  expect(reads).toEqual(['.gitignore'])
  expect(below.verdict('k.o', false, 0).kind).toBe('capture')
  expect(below.verdict('l.o', false, 0).kind).toBe('exclude')
  expect(known.verdict('x', false, 0).kind).toBe('exclude')
  expect(reads).toEqual(['.gitignore', 'd/.gitignore'])
})

test('enterKnown of a directory that is entered for its tracked paths only', () => {
  const tree = { '.gitignore': 'out/\n', out: { t: '', u: '' } }
  const setting = { git: { '': { trackedIgnored: new Set(['out/t']) } } }
  const { key } = rulesOf(tree, setting).enter('out', none)
  const known = rulesOf(tree, setting).enterKnown('out', none, key)
  expect([known.verdict('t', false, 0).kind, known.verdict('u', false, 0).kind]).toEqual(['capture', 'exclude'])
})
