/** Something is mounted over a directory above the target: that is hidden, and not deleted. */
import { existsSync, mkdirSync } from 'node:fs'
import { afterEach, beforeEach, expect } from 'vitest'
import { run } from './support/backend-scene.ts'
import { savepoint } from './support/built-cli.ts'
import { canMount, gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const above = () => space.at('above')
const target = () => space.at('above/target')

gated(canMount, 'root, to mount', 'a run does not end with nothing, and nothing is made again in there', async () => {
  mkdirSync(target(), { recursive: true })
  space.sh('echo 1 > above/target/a')
  const script = `echo 2 > a; mount -t tmpfs sheet '${above()}'`
  const ended = savepoint(space, ['run', '--', 'sh', '-c', script], { cwd: target() })
  try {
    expect(ended.stderr).toMatch(/NOT captured: Cannot see .*: sheet is mounted over it, at \S+above/)
    const [, before] = /to go back: savepoint rollback (snap_\w+)/.exec(ended.stderr)!
    const opened = () => space.open({ cwd: space.base, target: target() })
    const hidden = { code: 'target.missing', hint: expect.stringMatching(/umount \S+above\S?$/) }
    await expect((await opened()).snapshot()).rejects.toMatchObject(hidden)
    await expect((await opened()).rollback(before!)).rejects.toMatchObject(hidden)
    expect(existsSync(target())).toBe(false)
    run('umount', above())
    expect(space.read('above/target/a')).toBe('2\n')
    await (await opened()).rollback(before!)
    expect(space.read('above/target/a')).toBe('1\n')
  } finally {
    if (!existsSync(target())) run('umount', above())
  }
})
