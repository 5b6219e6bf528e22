import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makePrivate, temporaryName, writeDurably } from './durable.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-durable-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const file = () => join(directory, 'file')

test('a file is replaced as a whole, private, and nothing is left beside it', () => {
  writeFileSync(file(), 'old')
  writeDurably(file(), 'new')
  expect(readFileSync(file(), 'utf8')).toBe('new')
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['file'])
})

test('a write that fails leaves the old content and nothing beside it', () => {
  writeFileSync(file(), 'old')
  expect(() => writeDurably(file(), { toString: 1 } as unknown as string)).toThrow()
  expect([readFileSync(file(), 'utf8'), readdirSync(directory)]).toEqual(['old', ['file']])
})

test('what processes that died left in the directory is removed; what belongs to a living one stays', () => {
  const dead = spawnSync(process.execPath, ['-p', 'process.pid']).stdout.toString().trim()
  const living = process.ppid
  for (const name of [`file.tmp-${dead}`, `file.tmp-${living}`, `other.tmp-${dead}`, `tmp-${dead}`])
    writeFileSync(join(directory, name), '')
  expect(temporaryName(file())).toBe(`${file()}.tmp-${process.pid}`)
  expect(readdirSync(directory).sort()).toEqual([`file.tmp-${living}`, `tmp-${dead}`].sort())
})

test('a private file keeps what is in it', () => {
  makePrivate(file())
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  writeFileSync(file(), 'content')
  makePrivate(file())
  expect(readFileSync(file(), 'utf8')).toBe('content')
})
