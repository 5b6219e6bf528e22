import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makePrivate, removeAbandoned, temporaryName, writeDurably } from './durable.ts'
import { processMark } from './process-mark.ts'

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
  const where = processMark().split('.')[1]
  const left = [`file.tmp-${dead}.${where}`, `other.tmp-${dead}.${where}-wal`]
  const stays = [`file.tmp-${process.ppid}.${where}`, `tmp-${dead}.${where}`]
  for (const name of [...left, ...stays]) writeFileSync(join(directory, name), '')
  expect(temporaryName(file())).toBe(`${file()}.tmp-${process.pid}.${where}`)
  expect(readdirSync(directory).sort()).toEqual(stays.sort())
})

test('what a process of another container is at work with stays; what was not changed for a day goes', () => {
  const dead = spawnSync(process.execPath, ['-p', 'process.pid']).stdout.toString().trim()
  const [old, stays] = [`old.tmp-${dead}.elsewhere`, [`file.tmp-${dead}`, `file.tmp-${dead}.elsewhere`]]
  for (const name of [old, ...stays]) writeFileSync(join(directory, name), '')
  const before = Date.now() / 1000 - 2 * 24 * 60 * 60
  utimesSync(join(directory, old), before, before)
  removeAbandoned(directory)
  expect(readdirSync(directory).sort()).toEqual(stays.sort())
})

test('a private file keeps what is in it', () => {
  makePrivate(file())
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  writeFileSync(file(), 'content')
  makePrivate(file())
  expect(readFileSync(file(), 'utf8')).toBe('content')
})
