import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allTargets, createTarget, targetAt } from './target-registry.ts'

let base: string
let home: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'savepoint-registry-'))
  home = join(base, 'home')
  mkdirSync(join(base, 'shop'))
})
afterEach(() => rmSync(base, { recursive: true }))

const create = () => createTarget(home, Buffer.from(join(base, 'shop')), false, {})

test('two commands that found no timeline make one: the second uses what the first has made meanwhile', () => {
  expect(create()).toEqual(create())
  expect(allTargets(home)).toHaveLength(1)
})

test('in the place of a target that was moved away, a timeline of its own is made, by two as well', () => {
  const moved = create()
  renameSync(join(base, 'shop'), join(base, 'old'))
  targetAt(home, Buffer.from(join(base, 'old')), () => {})
  mkdirSync(join(base, 'shop'))
  const [first, second] = [create(), create()]
  expect(first.id).not.toBe(moved.id)
  expect(second).toEqual(first)
  expect(allTargets(home)).toHaveLength(2)
})
