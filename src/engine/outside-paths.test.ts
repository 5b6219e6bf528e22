import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { OutsidePaths } from './outside-paths.ts'

let base: string
let paths: OutsidePaths
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'savepoint-outside-')))
  mkdirSync(join(base, 'target'))
  paths = new OutsidePaths([join(base, 'target')])
})
afterEach(() => rmSync(base, { recursive: true }))

/** As the trace tells it, and then done. */
function rename(from: string, to: string, isOurs = false): void {
  const [path, there] = [join(base, from), join(base, to)]
  paths.note({ op: 'rename', at: Date.now(), path, to: there, existed: false }, isOurs)
  renameSync(path, there)
}

it('the target, moved away and back, is nothing outside', () => {
  rename('target', 'away', true)
  expect(paths.count()).toEqual({ outside: 0, removed: 0 })
  rename('away', 'further')
  rename('further', 'target')
  expect(paths.count()).toEqual({ outside: 0, removed: 0 })
})

it('nor is what it lies in; what comes to its place afterwards is', () => {
  mkdirSync(join(base, 'above'))
  rename('above', 'away', true)
  rename('away', 'above')
  expect(paths.count()).toEqual({ outside: 0, removed: 0 })
  mkdirSync(join(base, 'other'))
  rename('other', 'away')
  expect(paths.count()).toEqual({ outside: 2, removed: 1 })
})

it('nor is a copy that is exchanged with it, which takes along what was made in it', () => {
  const [target, copy, file] = ['target', 'copy', 'copy/a'].map(name => join(base, name)) as [string, string, string]
  for (const path of [copy, file]) {
    paths.note({ op: 'create', at: Date.now(), path, to: undefined, existed: false })
    mkdirSync(path)
  }
  expect(paths.count()).toEqual({ outside: 2, removed: 0 })
  for (const [path, to] of [
    [target, copy],
    [copy, target],
  ])
    paths.note({ op: 'exchange', at: Date.now(), path, to, existed: true }, true)
  expect(paths.count()).toEqual({ outside: 0, removed: 0 })
})
