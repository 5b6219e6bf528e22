/** A PARTIAL snapshot that is written elsewhere: what it does not have is named there, too, and the exit code says so. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

const LARGE = 200 * 1024
let space: Workspace
let id: string
beforeEach(() => {
  space = new Workspace()
  space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KiB\n')
  space.write('.savepointignore', '*.o\n')
  for (const path of ['a', 'src/b', 'src/b.o']) space.write(path)
  for (const path of ['model.bin', 'src/data']) space.write(path, Buffer.alloc(LARGE))
  const taken = savepoint(space, ['snapshot', '-q'])
  expect(taken.status).toBe(3)
  id = taken.stdout.trim()
})
afterEach(() => space.remove())

const at = (name: string): string => join(space.base, name)
const both = 'PARTIAL: 2 paths not captured\n  model.bin (too-large)\n  src/data (too-large)\n'
const listed = ['model.bin', 'src/data'].map(path => ({ path, reason: 'too-large' }))

it('rollback --to names what is not there, of the paths that were asked for, also in a dry run', () => {
  const dry = savepoint(space, ['rollback', id, '--to', at('out'), '--dry-run'])
  expect([dry.status, existsSync(at('out'))]).toEqual([3, false])
  expect(dry.stdout).toContain(both)
  const whole = savepoint(space, ['rollback', id, '--to', at('out')])
  expect([whole.status, whole.stdout]).toEqual([3, expect.stringMatching(/^Wrote snap_\w+ into .*: 4 paths\n/)])
  expect(whole.stdout).toContain(both)
  expect(readdirSync(at('out'))).not.toContain('model.bin')
  const part = savepoint(space, ['rollback', id, '--to', at('part'), '--', 'src'])
  expect([part.status, part.stdout]).toEqual([3, expect.stringContaining('1 path not captured\n  src/data (')])
  const other = savepoint(space, ['rollback', id, '--to', at('other'), '--', 'a'])
  expect([other.status, other.stdout]).toEqual([0, expect.not.stringContaining('PARTIAL')])
  const json = savepoint(space, ['rollback', id, '--to', at('json'), '--json'])
  expect([json.status, JSON.parse(json.stdout).uncaptured]).toEqual([3, listed.map(path => ({ ...path, kept: null }))])
  expect(savepoint(space, ['rollback', id, '--to', at('quiet'), '--quiet'])).toMatchObject({ status: 3, stdout: '' })
})

it('export does', () => {
  const written = savepoint(space, ['export', id, at('x.tar')])
  expect([written.status, written.stdout]).toEqual([3, expect.stringContaining(both)])
  const json = savepoint(space, ['export', id, at('y.tar'), '--json'])
  expect([json.status, JSON.parse(json.stdout).uncaptured]).toEqual([3, listed])
  expect(savepoint(space, ['export', id, at('z.tar'), '--quiet'])).toMatchObject({ status: 3, stdout: '' })
})

it('a snapshot that has everything ends with 0, whatever rules leave out', () => {
  space.sh('rm model.bin src/data')
  const whole = savepoint(space, ['snapshot', '-q']).stdout.trim()
  expect(savepoint(space, ['rollback', whole, '--to', at('out')]).status).toBe(0)
  expect(savepointJson(space, ['export', whole, at('x.tar')]).uncaptured).toEqual([])
})

it('a plain rollback says what it cannot bring back, or leaves as it is', () => {
  space.write('a', 'changed\n')
  space.write('model.bin', Buffer.alloc(LARGE, 1))
  space.sh('rm src/data')
  const { stdout } = savepoint(space, ['rollback', id])
  expect(stdout).toContain('NOT protected and gone: src/data (too large; it cannot be brought back)\n')
  const stays = 'Stay, because they were not captured: model.bin (too-large)\n'
  expect(stdout).toContain(stays)
  space.write('src/data', Buffer.alloc(LARGE))
  expect(savepoint(space, ['rollback', id, '--', 'a']).stdout).toBe(`Nothing to change: everything is as in ${id}\n`)
  expect(savepoint(space, ['revert', 'src', '--from', id]).stdout).toContain('captured: src/data (too-large)\n')
})
