import { expect, test } from 'vitest'
import { SavepointError } from '../errors/errors.ts'
import type { Raw } from '../model/raw-path.ts'
import { KEEP_MAX_BYTES } from './ignore-rules.ts'
import { captured, factsAt, file, rulesOf, type Setting, walk } from './rules-test-tree.ts'

test('a nested .gitignore goes before an outer one, and the verdict names the rule', () => {
  const seen = walk({
    '.gitignore': '# objects\n*.o\n*.log\n',
    'a.o': '',
    src: { '.gitignore': '!keep.o\n\n/gen/\n', 'keep.o': '', 'x.o': '', gen: { 'x.c': '' }, deep: { gen: '' } },
  })
  expect(seen).toMatchObject({
    'a.o': '.gitignore:2:*.o',
    'src/keep.o': 'capture',
    'src/x.o': '.gitignore:2:*.o',
    'src/gen': 'src/.gitignore:3:/gen/',
    'src/deep/gen': 'capture',
  })
  expect(seen).not.toHaveProperty(['src/gen/x.c'])
})

test('a directory that a deeper file takes back is captured with its content', () => {
  // The reason for a matcher of our own: the `ignore` package says that a/b/c is ignored.
  const tree = { '.gitignore': '/a/b/\n', a: { '.gitignore': '!b/\n', b: { c: '' } } }
  expect(captured(tree)).toContain('a/b/c')
})

test('.git is captured whatever the rules say, with everything in it', () => {
  const tree = { '.gitignore': '*\n', '.git': { HEAD: '', objects: { '.gitignore': '*', 'x.log': '' } }, x: '' }
  expect(captured(tree, { config: { additional: ['*'] } })).toEqual([
    '.git',
    '.git/HEAD',
    '.git/objects',
    '.git/objects/.gitignore',
    '.git/objects/x.log',
  ])
})

test('.savepointignore and exclude.additional win over tracked, kept and taken back', () => {
  const tree = {
    '.gitignore': '!big.bin\n.env\n',
    '.savepointignore': '*.bin\n!small.bin\n',
    'big.bin': '',
    'small.bin': '',
    '.env': '',
    sub: { '.savepointignore': '!own.bin', 'own.bin': '', 'x.secret': '' },
  }
  const git = { '': { trackedIgnored: new Set(['big.bin', '.env', 'sub/x.secret']) } }
  const seen = walk(tree, { git, config: { additional: ['*.secret', 'small.bin'], keep: ['.env'] } })
  expect(seen).toMatchObject({
    'big.bin': '.savepointignore:1:*.bin',
    'small.bin': 'config exclude.additional:2:small.bin',
    '.env': 'capture',
    'sub/own.bin': 'capture',
    'sub/x.secret': 'config exclude.additional:1:*.secret',
  })
})

test('tracked paths are captured although they are ignored; an excluded directory is entered for them only', () => {
  const tree = {
    '.gitignore': '/build/\n*.log\n',
    'a.log': '',
    'b.log': '',
    build: {
      keep: { 'yes.txt': '', 'no.txt': '', deep: { 'no.txt': '' } },
      other: { x: '' },
      '.env': '',
      sub: { x: '' },
    },
  }
  const git = { '': { trackedIgnored: new Set(['a.log', 'build/keep/yes.txt', 'build/sub']) } }
  expect(walk(tree, { git, config: { keep: ['.env'] } })).toEqual({
    '.gitignore': 'capture',
    'a.log': 'capture',
    'b.log': '.gitignore:2:*.log',
    build: 'tracked-only',
    'build/keep': 'tracked-only',
    'build/keep/yes.txt': 'capture',
    'build/keep/no.txt': '.gitignore:1:/build/',
    'build/keep/deep': '.gitignore:1:/build/',
    'build/other': '.gitignore:1:/build/',
    'build/.env': '.gitignore:1:/build/',
    'build/sub': 'capture',
    'build/sub/x': 'capture',
  })
})

test('an ignore file inside an excluded directory cannot take back what is not tracked', () => {
  const tree = { '.gitignore': 'out/\n', out: { '.gitignore': '!*', t: '', u: '' } }
  const seen = walk(tree, { git: { '': { trackedIgnored: new Set(['out/t']) } } })
  expect(seen).toMatchObject({ out: 'tracked-only', 'out/t': 'capture', 'out/u': '.gitignore:1:out/' })
})

test('small precious files that only git ignores are kept', () => {
  const tree = { '.gitignore': '.env*\nsecret/\n', '.env': '', '.env.local': '', '.envrc': '', secret: { '.env': '' } }
  const config = { keep: ['.env', '.env.*', '!.env.local', 'secret'] }
  expect(captured(tree, { config })).toEqual(['.gitignore', '.env'])
  expect(captured(tree, { config, sizeBytes: KEEP_MAX_BYTES })).toContain('.env')
  expect(captured(tree, { config, sizeBytes: KEEP_MAX_BYTES + 1 })).not.toContain('.env')
})

test('a nested repository starts anew, but our own rules reach into it', () => {
  const tree = {
    '.gitignore': '*.o\n',
    '.savepointignore': '*.tmp\n',
    vendor: {
      '.git': { HEAD: '' },
      '.gitignore': '*.a\n',
      'x.o': '',
      'x.a': '',
      'x.tmp': '',
      'x.priv': '',
      'x.swp': '',
    },
  }
  const setting: Setting = {
    git: { '': {}, vendor: { infoExclude: file('vendor/.git/info/exclude', '*.priv\n') } },
    outer: { globalExcludes: file('/home/u/.config/git/ignore', '*.swp\n') },
  }
  expect(walk(tree, setting)).toMatchObject({
    'vendor/x.o': 'capture',
    'vendor/x.a': 'vendor/.gitignore:1:*.a',
    'vendor/x.tmp': '.savepointignore:1:*.tmp',
    'vendor/x.priv': 'vendor/.git/info/exclude:1:*.priv',
    'vendor/x.swp': '/home/u/.config/git/ignore:1:*.swp',
  })
  const ownExcludes = { '': {}, vendor: { globalExcludes: file('/x', '') } }
  expect(walk(tree, { ...setting, git: ownExcludes })).toMatchObject({ 'vendor/x.swp': 'capture' })
})

test('the order of sources is .gitignore, info/exclude, global excludes', () => {
  const tree = { '.gitignore': '!a\n', a: '', b: '', c: '' }
  const git = { '': { infoExclude: file('.git/info/exclude', 'a\n!b\n') } }
  const outer = { globalExcludes: file('/g', 'a\nb\nc\n') }
  expect(walk(tree, { git, outer })).toMatchObject({ a: 'capture', b: 'capture', c: '/g:3:c' })
})

test('a repository around the target counts, with patterns relative to its directories', () => {
  const tree = { x: { y: '', z: '' }, tracked: '', other: '', 'q.priv': '', n: '' }
  const outer = {
    files: [file('../.gitignore', '/t/n\n', 't'), file('../../.gitignore', '/s/t/x/y\nx/z\ntracked\nother\n', 's/t')],
    infoExclude: file('../../.git/info/exclude', 's/**/*.priv\n', 's/t'),
    git: factsAt('../..', { trackedIgnored: new Set(['tracked']) }),
  }
  const seen = walk(tree, { outer })
  expect(seen).toMatchObject({
    'x/y': '../../.gitignore:1:/s/t/x/y',
    'x/z': 'capture',
    tracked: 'capture',
    other: '../../.gitignore:4:other',
    'q.priv': '../../.git/info/exclude:1:s/**/*.priv',
    n: '../.gitignore:1:/t/n',
  })
  // As a repository of its own it takes nothing over.
  expect(walk(tree, { outer, git: { '': {} } })).toMatchObject({ other: 'capture' })
})

test('ignore_gitignore leaves only our own rules', () => {
  const tree = { '.gitignore': '*\n', '.savepointignore': 'n\n', a: '', n: '', d: { '.gitignore': '*', x: '' } }
  const outer = {
    globalExcludes: file('/g', 'a\n'),
    infoExclude: file('/i', 'a\n'),
    files: [file('../.gitignore', 'a')],
  }
  const config = { ignoreGitignore: true }
  expect(captured(tree, { outer, config })).toEqual(['.gitignore', '.savepointignore', 'a', 'd', 'd/.gitignore', 'd/x'])
})

test('an ignore file that cannot be read is a warning, one that vanished is nothing', () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code })
  }
  const tree = { '.gitignore': '*\n', a: '' }
  const warnings: string[] = []
  expect(captured(tree, { read: failing('EACCES'), warnings })).toContain('a')
  expect(warnings).toEqual(['The rules of .gitignore do not apply: it cannot be read (EACCES)'])
  expect(captured(tree, { read: failing('ENOENT'), warnings })).toContain('a')
  expect(warnings).toHaveLength(1)
})

test('a failing matcher aborts with an error that says so', () => {
  const rules = rulesOf({ '.gitignore': '[ab]c\n' })
  expect(() => rules.verdict(undefined as unknown as Raw, false, 0)).toThrow(SavepointError)
})

test('patterns are compared as bytes', () => {
  const tree = { '.gitignore': '\xff*\ncaf\xc3\xa9\n??\n', '\xffx': '', 'caf\xc3\xa9': '', '\xc3\xa9': '', README: '' }
  expect(captured({ ...tree, '.gitignore': `${tree['.gitignore']}readme\n` })).toEqual(['.gitignore', 'README'])
  const config = { additional: ['café'] }
  expect(walk(tree, { config })['caf\xc3\xa9']).toBe('config exclude.additional:1:café')
})

test('a pattern that would need endless backtracking is decided at once', () => {
  const stars = `${'*a'.repeat(60)}*b`
  const tree = { '.gitignore': `${stars}\n${'**/a/'.repeat(60)}b\n`, ['a'.repeat(255)]: '' }
  const rules = rulesOf(tree)
  const started = performance.now()
  expect(rules.verdict('a'.repeat(255), false, 0).kind).toBe('capture')
  let deep = rules
  for (let i = 0; i < 200; i++) deep = deep.enter('a', { gitignore: false, savepointignore: false })
  expect(deep.verdict('c', false, 0).kind).toBe('capture')
  expect(performance.now() - started).toBeLessThan(500)
})

// --- keys ---
