/** `bundle restore --in-place` where one directory cannot stage it all: other filesystems, and directories of others. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { giveToUser, savepoint, savepointAsUser } from './support/built-cli.ts'
import { canMount, gated, isRoot } from './support/machine.ts'
import { recordScript } from './support/recorded.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const restore = (...args: string[]) => savepoint(space, ['bundle', 'restore', '--in-place', '--yes', ...args])

gated(canMount, 'root', 'what lies on another filesystem below comes back there, and what moved between them', () => {
  space.write('a', 'a\n')
  mkdirSync(space.at('mounted'))
  space.sh('mount -t tmpfs -o size=1m none mounted')
  try {
    space.sh('mkdir mounted/sub; echo old > mounted/sub/file')
    const before = imageOf(space.dir)
    const { directory } = recordScript(
      space,
      'echo new > mounted/sub/file; mkdir -p mounted/made/deep; echo x > mounted/made/deep/x; mv a mounted/moved; echo b > b',
    )
    const after = imageOf(space.dir)
    expect(restore('--before', directory)).toMatchObject({ status: 0, stderr: '' })
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(restore('--before', `${directory}.undo`)).toMatchObject({ status: 0, stderr: '' })
    expect(differences(after, imageOf(space.dir))).toEqual([])
  } finally {
    space.sh('umount mounted')
  }
})

gated(canMount, 'root', 'no link leads to another filesystem from below', () => {
  const outside = join(space.base, 'outside')
  mkdirSync(outside)
  space.sh(`mount -t tmpfs -o size=1m none '${outside}'`)
  try {
    space.write('dir/file', 'before\n')
    const { directory } = recordScript(space, 'echo after > dir/file')
    space.sh(`cp -p dir/file '${outside}'; rm -r dir`)
    symlinkSync(outside, space.at('dir'))
    expect(restore('--before', directory).status).toBe(3)
    expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('after\n')
  } finally {
    space.sh(`umount '${outside}'`)
  }
})

gated(isRoot, 'root', 'a command that its user started in a directory of somebody else is taken back', () => {
  space.write('own/file', 'before\n')
  space.write('writable', 'before\n')
  giveToUser(space)
  space.sh('chown 0:0 .; chmod 755 .')
  const script = 'echo after > own/file; echo made > own/made; echo after > writable'
  const bundle = join(space.base, 'bundle')
  expect(savepointAsUser(space, ['record', '-o', bundle, '--', 'sh', '-ec', script]).status).toBe(0)
  const run = (side: string) => savepointAsUser(space, ['bundle', 'restore', side, '--in-place', '--yes', bundle])
  expect(run('--after')).toMatchObject({ status: 0, stdout: expect.stringContaining('Nothing to do') })
  const result = run('--before')
  // In the directory of somebody else, nothing can be put in the place of a file.
  expect([result.status, result.stdout]).toEqual([3, expect.stringContaining(`  ${space.at('writable')}\n`)])
  expect([space.read('own/file'), existsSync(space.at('own/made')), space.read('writable')]).toEqual([
    'before\n',
    false,
    'after\n',
  ])
})

it('a directory that can be read but not entered goes, with several directories in it', () => {
  space.write('name', 'before\n')
  giveToUser(space)
  const before = imageOf(space.dir)
  const script =
    'rm name; mkdir -p name/shut/a name/shut/b name/shut/c; for i in a b c; do echo $i > name/shut/$i/file; done; chmod 600 name/shut'
  const bundle = join(space.base, 'bundle')
  expect(savepointAsUser(space, ['record', '-o', bundle, '--', 'sh', '-ec', script]).status).toBe(0)
  const result = savepointAsUser(space, ['bundle', 'restore', '--before', '--in-place', '--yes', bundle])
  expect(result).toMatchObject({ status: 0, stderr: '' })
  expect(differences(before, imageOf(space.dir))).toEqual([])
})
