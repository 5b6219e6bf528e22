/** The target is reached through a link, which the run makes lead elsewhere, as scripts do that put a new release in place. */
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
const at = (name: string) => join(space.dir, name)
const deploy = 'echo two > a; cp -a . ../r2; ln -sfn r2 ../current'
beforeEach(() => {
  space = new Workspace()
  mkdirSync(at('r1'))
  writeFileSync(join(at('r1'), 'a'), 'one\n')
  symlinkSync('r1', at('current'))
})
afterEach(() => space.remove())

/** In a shell that has gone there by the link. */
const inCurrent = (args: string[]) =>
  savepoint(space, args, { cwd: at('current'), env: { ...space.env, PWD: at('current') } })
const said = () =>
  `savepoint: ${at('current')} leads to ${at('r2')} now, and what is protected is ${at('r1')}: savepoint -t ${at('r1')} log\n`

it('by the path of the shell: the end of the run says where its history is, and so does the place without one', () => {
  const { status, stderr } = inCurrent(['run', '--', 'sh', '-c', deploy])
  expect([status, stderr]).toEqual([0, expect.stringContaining(said())])
  expect(realpathSync(at('current'))).toBe(at('r2'))
  for (const verb of ['undo', 'log', 'status']) {
    const none = inCurrent([verb])
    const hint = `hint: ${at('current')} is a link. If it led to ${at('r1')} before: savepoint -t ${at('r1')} log. `
    expect([none.status, none.stderr]).toEqual([10, expect.stringContaining(hint)])
  }
  expect(savepoint(space, ['-t', at('r1'), 'undo']).status).toBe(0)
  expect(readFileSync(join(at('r1'), 'a'), 'utf8')).toBe('one\n')
})

it('by -t: the commands that are said lead to what it was', () => {
  const { stderr } = savepoint(space, ['-t', 'current', 'run', '--', 'sh', '-c', `cd r1; ${deploy}`])
  expect(stderr).toContain(`To undo: savepoint -t ${at('r1')} undo\n${said()}`)
  expect(savepoint(space, ['-t', 'current', 'undo']).stderr).toContain(`before: savepoint -t ${at('r1')} log. `)
})

it('nothing is said of a link that leads where it did, and of a directory beside protected ones', () => {
  expect(inCurrent(['run', '--', 'true']).stderr).not.toContain('leads to')
  mkdirSync(at('other'))
  expect(savepoint(space, ['log'], { cwd: at('other') }).stderr).toContain('hint: Protect it with `savepoint snapshot`')
})
