/** The target directory's own mode is part of the state: its change is shown, counted and taken back like any other. */
import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  chmodSync(space.dir, 0o755)
  space.write('a', 'a1')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const mode = () => statSync(space.dir).mode & 0o777
const metadata = { created: 0, deleted: 0, replaced: 0, metadata: 1 }
const own = [{ action: 'metadata', path: '', files: 1 }]

describe('a change of the mode of the target itself', () => {
  it('is shown by status, diff, changes, the plan, the rollback and the next snapshot', async () => {
    const { id } = await savepoint.snapshot()
    chmodSync(space.dir, 0o700)
    expect(runCli(space, ['status']).stdout).toMatch(/Since then: 1 modified\n {2}m \.\/\n/)
    expect(runCli(space, ['diff', '--name-status']).stdout).toBe('m ./\n')
    expect(runCli(space, ['diff', '--name-only']).stdout).toBe('.\n')
    expect(runCli(space, ['diff']).stdout).toBe('Directory .: mode 755 -> 700\n')
    expect(runCli(space, ['changes']).stdout).toContain('m ./')
    expect(JSON.parse(runCli(space, ['diff', '--json']).stdout).changes).toMatchObject([
      { kind: 'metadata', path: '.', before: { mode: '0755' }, after: { mode: '0700' } },
    ])
    expect(runCli(space, ['rollback', id, '--dry-run']).stdout).toMatch(/1 with attributes put back\n {2}m \.\/\n/)
    expect(mode()).toBe(0o700)
    const { stdout } = runCli(space, ['rollback', id])
    expect(stdout).toMatch(/1 with attributes put back\nTo undo: savepoint undo\n/)
    expect(mode()).toBe(0o755)
    chmodSync(space.dir, 0o711)
    expect((await savepoint.snapshot()).counts).toEqual({ added: 0, modified: 1, deleted: 0 })
  })

  it('is counted by run, undo and redo', async () => {
    const { counts } = await savepoint.run({ command: ['chmod', '700', '.'] })
    expect(counts).toEqual({ added: 0, modified: 1, deleted: 0 })
    expect((await savepoint.undo()).restore).toMatchObject({ files: metadata, changes: own, leftAlone: [] })
    expect(mode()).toBe(0o755)
    expect((await savepoint.redo()).restore).toMatchObject({ files: metadata, changes: own })
    expect(mode()).toBe(0o700)
  })

  it('is left alone and reported when somebody else changed it since', async () => {
    await savepoint.run({ command: ['chmod', '700', '.'] })
    chmodSync(space.dir, 0o711)
    const { stdout, status } = runCli(space, ['undo'])
    expect(stdout).toMatch(/Left alone \(1\):\n {2}\.: edited by somebody else since/)
    expect([status, mode()]).toEqual([3, 0o711])
  })

  it('is outside of a subdirectory, and of paths that are named', async () => {
    mkdirSync(space.at('sub'))
    await savepoint.snapshot()
    await savepoint.run({ command: ['chmod', '700', '.'] })
    const inside = runCli(space, ['undo'], { cwd: space.at('sub') })
    expect(inside.stderr).toContain('the operation also changed ./ outside of it')
    expect((await savepoint.diff({ from: 'HEAD', paths: ['a'] })).changes).toEqual([])
    expect(mode()).toBe(0o700)
  })
})

describe('a target that was removed', () => {
  it('is not left behind with a mode of ours when it cannot be restored; the next undo puts all right', async () => {
    chmodSync(space.dir, 0o555)
    await savepoint.run({ command: ['sh', '-c', `cd /; chmod 755 '${space.dir}'; rm -rf '${space.dir}'`] })
    const env = { ...space.env, SAVEPOINT_FAILPOINT: 'restore:staged@ENOSPC' }
    const undo = ['undo', '-t', space.dir]
    expect(runCli(space, undo, { cwd: space.base, env }).status).not.toBe(0)
    expect(existsSync(space.dir)).toBe(false)
    const { status, stderr } = runCli(space, undo, { cwd: space.base })
    expect([status, stderr]).toEqual([0, expect.stringContaining('made again')])
    expect([mode(), space.read('a')]).toEqual([0o555, 'a1'])
  })
})
