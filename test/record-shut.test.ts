/** Directories that their own owner has shut (`chmod 600`): the recorded command moves, replaces and opens them. */
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Bundle } from '../src/record/index.ts'
import { giveToUser, savepointAsUser } from './support/built-cli.ts'
import { isRoot } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

/** Nobody but root can compare what lies in them with what was there. */
describe.skipIf(!isRoot)('shut directories (only root can look into them)', () => {
  function record(setup: string, script: string) {
    space.sh(setup)
    giveToUser(space)
    const before = imageOf(space.dir)
    const directory = join(space.base, 'bundle')
    const { stderr } = savepointAsUser(space, ['record', '-o', directory, '--', 'sh', '-c', script])
    return { before, after: imageOf(space.dir), directory, stderr, manifest: new Bundle(directory).manifest }
  }

  const restore = (directory: string, side: string) =>
    savepointAsUser(space, ['bundle', 'restore', side, '--in-place', '--yes', directory])

  const tree = 'mkdir -p a/in; echo one > a/file; echo two > a/in/file'
  it.each([
    ['moved and opened', `${tree}; chmod 600 a`, 'mv a b; chmod 755 b; echo more > b/file'],
    ['moved, listed only', `${tree}; chmod 444 a`, 'mv a b; chmod 755 b'],
    ['moved, wholly shut', `${tree}; chmod 0 a`, 'mv a b; chmod 755 b; mv b/in c; rm -r b'],
    ['moved along, then opened', `${tree}; chmod 600 a/in`, 'mv a b; chmod 755 b/in; echo more > b/in/file'],
    ['moved along, and still shut', `${tree}; chmod 0 a/in`, 'mv a b'],
    ['moved along and deleted', `${tree}; chmod 600 a/in`, 'mv a b; chmod 700 b/in; rm -r b'],
    ['replaced by another', `${tree}; mkdir b; chmod 0 b`, 'mv -T a b'],
    ['not replaced, as it is not empty', `${tree}; mkdir b; echo three > b/file; chmod 300 b`, 'mv -T a b'],
    ['refused first', `${tree}; chmod 600 a`, 'rm a/file; mv a/in b; chmod 755 a; rm a/file; mv a/in b'],
  ])('%s', (_, setup, script) => {
    const { before, after, directory, stderr, manifest } = record(setup, script)
    expect(stderr).not.toContain('INCOMPLETE')
    expect([manifest.lost_events, manifest.skipped]).toEqual([0, []])
    expect(restore(directory, '--before')).toMatchObject({ status: 0, stderr: '' })
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(restore(directory, '--after')).toMatchObject({ status: 0, stderr: '' })
    expect(differences(after, imageOf(space.dir))).toEqual([])
  })

  it('a file is not new because a directory above it was shut meanwhile', () => {
    const { directory, stderr } = record(tree, 'ls a/in; cd a/in; chmod 600 ..; mkdir "$OLDPWD/made"; echo more > file')
    const file = new Bundle(directory).files.find(each => each.path === space.at('a/in/file'))
    expect(file?.before).toMatchObject({ exists: true, size: 4 })
    // Its content could not be reached; that is said, and nothing is deleted.
    expect(stderr).toContain('INCOMPLETE')
    expect(restore(directory, '--before')).toMatchObject({ status: 3, stderr: expect.stringContaining('INCOMPLETE') })
    expect(imageOf(space.dir).has('a/in/file')).toBe(true)
  })

  it('a directory that nobody here can open is named as a loss when it is moved', () => {
    space.sh(`${tree}; chmod 700 a/in`)
    giveToUser(space)
    space.sh('chown -R 0:0 a/in')
    const directory = join(space.base, 'bundle')
    const { stderr } = savepointAsUser(space, ['record', '-o', directory, '--', 'sh', '-c', 'mv a b'])
    expect(stderr).toContain('INCOMPLETE')
  })
})
