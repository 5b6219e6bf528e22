/** What git itself prints for the same changes, compared byte for byte. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import type { ContentChange } from './content-change.ts'
import { fixtureEntry } from './fixture-entry.ts'
import { formatStat, statOf } from './stat.ts'
import { unifiedDiffBytes } from './unified.ts'

interface State {
  text?: Raw
  link?: Raw
  mode?: number
}
interface Case {
  path: Raw
  from?: Raw
  before?: State
  after?: State
}

const hasGit = spawnSync('git', ['--version']).status === 0
const count = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `${from + i}\n`).join('')
const longName = `some/${'rather-long-directory/'.repeat(4)}name.txt`

/** In git's order of paths. */
const cases: Case[] = [
  { path: ' leading space', before: { text: 'a\n' }, after: { text: 'b\n' } },
  { path: 'added', after: { text: 'one\ntwo' } },
  { path: 'added empty', after: { text: '', mode: 0o755 } },
  { path: 'added link', after: { link: 'some where' } },
  { path: 'binary', before: { text: 'a\0b' }, after: { text: 'a\0cd' } },
  {
    path: 'code.c',
    before: { text: `int main(void) {\n${count(0, 20)}` },
    after: { text: `int main(void) {\n${count(0, 12)}x\n${count(12, 20)}` },
  },
  { path: 'crlf', before: { text: 'a\r\nb\r\n' }, after: { text: 'a\r\nc\r\n' } },
  { path: 'deleted', before: { text: 'gone\n' } },
  { path: 'deleted empty', before: { text: '' } },
  { path: 'dir/new/moved here', from: 'dir/old/moved here', before: { text: 'same\n' }, after: { text: 'same\n' } },
  {
    path: 'far',
    before: { text: count(0, 500) },
    after: { text: `new\n${count(0, 100)}${count(103, 400)}y\n${count(400, 480)}` },
  },
  {
    path: 'gaps',
    before: { text: count(0, 40) },
    after: { text: `${count(1, 10)}x\n${count(11, 17)}y\n${count(18, 25)}z\n${count(26, 40)}` },
  },
  { path: 'link', before: { link: 'old' }, after: { link: 'new' } },
  { path: 'mode', before: { text: 'm\n' }, after: { text: 'm\n', mode: 0o755 } },
  { path: 'mode and text', before: { text: 'm\n' }, after: { text: 'n\n', mode: 0o755 } },
  { path: 'quote " back\\slash\ttab\x07\x7f', before: { text: 'q\n' }, after: { text: 'r\n' } },
  { path: longName, before: { text: 'l\n' }, after: { text: count(0, 37) } },
  { path: 'type', before: { text: 'file\n' }, after: { link: 'file\n' } },
  { path: 'z/b/c', from: 'z/c', before: { text: 'moved down\n', mode: 0o755 }, after: { text: 'moved down\n' } },
  { path: 'zz moved', from: 'zz', before: { text: 'moved aside\n' }, after: { text: 'moved aside\n' } },
  { path: '\xc3\xa4 and \xff', before: { text: 'bytes \xff\n' }, after: { text: 'bytes \xfe\n' } },
]

describe.skipIf(!hasGit)('git parity (skipped without git)', () => {
  let root = ''
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: string[]) => {
    const done = spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: root, env })
    if (done.status !== 0) throw new Error(`git ${args.join(' ')}: ${done.stderr}`)
    return done.stdout
  }

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'savepoint-parity-'))
    git('init', '-q')
    for (const { path, from, before } of cases) if (before) writeState(root, from ?? path, before)
    git('add', '-A')
    git('commit', '-q', '-m', 'before')
    for (const { path, from, before } of cases) if (before) rmSync(pathIn(root, from ?? path))
    for (const { path, after } of cases) if (after) writeState(root, path, after)
    git('add', '-A')
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it('writes the same unified diff, except for the sizes of binary files', () => {
    const theirs = git('diff', '--cached', '-M100%', '--no-rename-empty', '--abbrev=7').toString('latin1')
    const ours = Buffer.concat(cases.map(one => unifiedDiffBytes(asChange(one)))).toString('latin1')
    expect(ours.replace(/\nSize: .*/, '').split('\n')).toEqual(theirs.split('\n'))
  })

  for (const width of [80, 30, 45, 132, 400]) {
    it(`writes the same --stat, ${width} columns wide`, () => {
      const theirs = git('diff', '--cached', '-M100%', '--no-rename-empty', `--stat=${width}`).toString('latin1')
      const stats = cases.flatMap(one => statOf(asChange(one)) ?? [])
      expect(formatStat(stats, { width }).split('\n')).toEqual(theirs.split('\n'))
    })
  }

  it('writes the same --stat for one small file', () => {
    const theirs = git('diff', '--cached', '--stat=80', '--', 'crlf').toString('latin1')
    expect(formatStat([statOf(asChange(cases.find(({ path }) => path === 'crlf')!))!])).toBe(theirs)
  })
})

const pathIn = (root: string, path: Raw) => Buffer.concat([Buffer.from(`${root}/`), rawToBytes(path)])

function writeState(root: string, path: Raw, state: State): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  const place = pathIn(root, path)
  if (state.link !== undefined) symlinkSync(state.link, place)
  else {
    writeFileSync(place, rawToBytes(state.text ?? ''))
    chmodSync(place, state.mode ?? 0o644)
  }
}

function asChange({ path, from, before, after }: Case): ContentChange {
  const entryOf = (state: State | undefined) =>
    state &&
    fixtureEntry({
      kind: state.link === undefined ? 'file' : 'link',
      mode: state.mode ?? 0o644,
      target: state.link ?? '',
      content: state.text === undefined ? '' : `id of ${state.text}`,
    })
  const bytesOf = (state: State | undefined) => (state?.text === undefined ? undefined : rawToBytes(state.text))
  return {
    path,
    ...(from === undefined ? {} : { from }),
    before: entryOf(before),
    after: entryOf(after),
    beforeContent: bytesOf(before),
    afterContent: bytesOf(after),
  }
}
