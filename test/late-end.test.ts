/** A run that fills the disk: the state at its end is captured when there is room again, by the next command that needs it. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { dialogue } from './support/dialogue.ts'
import { canMount } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const needs = canMount ? '' : ' [needs a kernel that lets root mount]'

let space: Workspace
let mounted: string | undefined
const settings: NodeJS.ProcessEnv = {}
const disk = () => join(space.base, 'disk')
const filler = () => join(disk(), 'filler')
beforeEach(() => {
  space = new Workspace('work', settings)
  settings.SAVEPOINT_HOME = join(disk(), 'home')
  mounted = undefined
})
afterEach(() => {
  if (mounted !== undefined) execFileSync('umount', ['-l', mounted])
  space.remove()
})

const { json } = dialogue(() => space)
const undo = () => savepoint(space, ['undo'])
const state = () => ({ a: space.read('a'), made: existsSync(space.at('made')), hers: space.read('hers') })
const captured = (id: string) =>
  `savepoint: ${id}: the state after it was not captured when it ended: what is there now counts as its end, with what others have changed since\n`

/** What is below `place` is on a small disk. */
function prepare(place: string): void {
  mkdirSync(place, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=700', 'none', place])
  mounted = place
  const home = join(disk(), 'home')
  mkdirSync(space.dir, { recursive: true })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
  space.write('a', 'one\n')
  space.write('hers', 'one\n')
  expect(savepoint(space, ['snapshot']).status).toBe(0)
  rmSync(join(home, 'store/reserve'))
}

/** Of a run that changes a file, makes one that is not in the store, and leaves no room. Answers its id. */
function runFilling(): string {
  const script = `echo two > a; head -c 3000000 /dev/urandom > made; cat /dev/zero > '${filler()}' 2>/dev/null; exit 7`
  const { status, stderr } = savepoint(space, ['run', '--', 'sh', '-c', script])
  const way = /NOT captured: .*to go back: savepoint rollback snap_\w+, or when that is mended savepoint undo\n/
  expect([status, stderr]).toEqual([7, expect.stringMatching(way)])
  return json('runs')[0].id
}

it.skipIf(!canMount)(`undo takes the run back when there is room${needs}`, () => {
  prepare(disk())
  const id = runFilling()
  expect(savepoint(space, ['status']).stdout).toMatch(/^To undo: savepoint undo$/m)
  const refused = undo()
  const still = expect.stringContaining(`the state after ${id} can still not be captured`)
  expect([refused.status, refused.stderr, space.read('a')]).toEqual([1, still, 'two\n'])
  rmSync(filler())
  const undone = undo()
  expect([undone.status, undone.stderr]).toEqual([0, expect.stringContaining(captured(id))])
  expect(state()).toEqual({ a: 'one\n', made: false, hers: 'one\n' })
  const ended = { id, exit_code: 7, interrupted: false, after: expect.stringMatching(/^snap_/) }
  expect(json('runs')[0]).toMatchObject(ended)
  expect(savepoint(space, ['redo']).status).toBe(0)
  expect(state()).toEqual({ a: 'two\n', made: true, hers: 'one\n' })
  expect(savepoint(space, ['rollback', id]).status).toBe(0)
  expect(state()).toEqual({ a: 'one\n', made: false, hers: 'one\n' })
})

it.skipIf(!canMount)(`so it does where the target is on that disk, too${needs}`, () => {
  prepare(space.base)
  mkdirSync(disk(), { recursive: true })
  const id = runFilling()
  rmSync(filler())
  const undone = undo()
  expect([undone.status, undone.stderr]).toEqual([0, expect.stringContaining(captured(id))])
  expect(state()).toEqual({ a: 'one\n', made: false, hers: 'one\n' })
  expect(savepoint(space, ['verify']).status).toBe(0)
})

it.skipIf(!canMount)(`what somebody did until then goes back with it, and is named with the way to it${needs}`, () => {
  prepare(disk())
  runFilling()
  rmSync(filler())
  space.write('hers', 'two\n')
  const { status, stdout } = undo()
  expect([status, state()]).toEqual([0, { a: 'one\n', made: false, hers: 'one\n' }])
  const named = /^May also hold somebody else's edit.* hers\b.*\nTo have that back: savepoint revert .*hers/m
  expect(stdout).toMatch(named)
})

it.skipIf(!canMount)(`rollback of the run does it as well${needs}`, () => {
  prepare(disk())
  const id = runFilling()
  rmSync(filler())
  const { status, stderr } = savepoint(space, ['rollback', id])
  expect([status, stderr, space.read('a')]).toEqual([0, expect.stringContaining(captured(id)), 'one\n'])
})

it.skipIf(!canMount)(
  `so does the next run before it begins: undo takes that one back first, and then this${needs}`,
  () => {
    prepare(disk())
    const id = runFilling()
    rmSync(filler())
    const next = savepoint(space, ['run', '--', 'sh', '-c', 'echo three > a'])
    expect([next.status, next.stderr]).toEqual([0, expect.stringContaining(captured(id))])
    expect([undo().status, state()]).toEqual([0, { a: 'two\n', made: true, hers: 'one\n' }])
    expect([undo().status, state()]).toEqual([0, { a: 'one\n', made: false, hers: 'one\n' }])
  },
)
