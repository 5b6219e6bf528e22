import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { indexDigest, readIndexEntries } from './git-index.ts'

let dir: string
const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: dir, env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' } })
const index = () => readFileSync(join(dir, '.git/index'))
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'savepoint-index-'))
  git('init', '-q')
  for (let i = 0; i < 20; i++) writeFileSync(join(dir, `file-${'x'.repeat(i)}`), String(i))
  git('add', '.')
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

it.each(['2', '4'])('is the same after a refresh, and another one after an edit, in version %s', version => {
  git('update-index', '--index-version', version)
  const before = index()
  expect(indexDigest(before)).toBeDefined()
  utimesSync(join(dir, 'file-x'), 1, 1)
  git('status')
  expect(index().equals(before)).toBe(false)
  expect(indexDigest(index())).toBe(indexDigest(before))
  writeFileSync(join(dir, 'file-x'), 'other')
  git('add', '.')
  expect(indexDigest(index())).not.toBe(indexDigest(before))
})

it.each(['2', '4'])('notices a changed mode, a removed path and intent-to-add, in version %s', version => {
  git('update-index', '--index-version', version)
  const digests = [indexDigest(index())]
  git('update-index', '--chmod=+x', 'file-x')
  digests.push(indexDigest(index()))
  git('rm', '-q', '--cached', 'file-xx')
  digests.push(indexDigest(index()))
  git('add', '-N', 'file-xx')
  digests.push(indexDigest(index()))
  expect(new Set(digests).size).toBe(4)
  expect(digests).not.toContain(undefined)
})

it.each(['2', '4'])('has the entries that git lists, in version %s', version => {
  git('update-index', '--index-version', version)
  expect(listed()).toEqual(asGitLists())
  expect(readIndexEntries(index())!.get('file-x')!.size).toBe(1)
})

it('has them with other hashes, too', () => {
  rmSync(join(dir, '.git'), { recursive: true })
  git('init', '-q', '--object-format=sha256')
  git('add', '.')
  expect(listed()).toEqual(asGitLists())
})

const listed = () => Array.from(readIndexEntries(index())!, ([path, { oid }]) => `${oid} ${path}`)
const asGitLists = () =>
  git('ls-files', '--stage')
    .toString()
    .trim()
    .split('\n')
    .map(line => line.replace(/^\d+ (\w+) 0\t/, '$1 '))

it('does not guess', () => {
  expect(indexDigest(Buffer.alloc(0))).toBeUndefined()
  expect(indexDigest(index().subarray(0, 100))).toBeUndefined()
  expect(readIndexEntries(index().subarray(0, -1))).toBeUndefined()
})
