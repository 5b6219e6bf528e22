/** `bundle restore --in-place` where one directory cannot stage it all: other filesystems, and directories of others. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
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

function whileMounted(options: string, work: () => void): void {
  mkdirSync(space.at('mounted'))
  space.sh(`mount ${options} none mounted`)
  try {
    work()
  } finally {
    space.sh('umount mounted')
  }
}

gated(canMount, 'root', 'what lies on another filesystem below comes back there, and what moved between them', () => {
  space.write('a', 'a\n')
  whileMounted('-t tmpfs -o size=1m', () => {
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
  })
})

gated(
  canMount,
  'root',
  'what is mounted below from the same filesystem comes back there; what is mounted on a file stays',
  () => {
    const outside = join(space.base, 'outside')
    mkdirSync(outside)
    mkdirSync(space.at('bound'))
    space.sh('echo old > ../one; echo hidden > file; mount --bind ../outside bound; mount --bind ../one file')
    try {
      space.sh('mkdir bound/sub; echo old > bound/sub/file; echo old > a')
      const before = imageOf(space.dir)
      const { directory } = recordScript(
        space,
        'echo new > bound/sub/file; mkdir bound/made; mv a bound/moved; chmod 700 bound; echo new > file',
      )
      const result = restore('--before', directory)
      expect([result.status, result.stdout]).toEqual([
        3,
        expect.stringContaining(`Left alone (something is mounted there):\n  ${space.at('file')}\n`),
      ])
      expect(differences(before, imageOf(space.dir))).toEqual([expect.stringMatching(/^file: /)])
      expect(space.read('file')).toBe('new\n')
    } finally {
      space.sh('umount bound file')
    }
  },
)

it('outside of the start, nothing is written through a link, and the rest is restored', () => {
  const outside = join(space.base, 'outside')
  space.sh('mkdir -p ../outside/way/deep ../outside/real; echo old > ../outside/way/deep/file; echo old > a')
  const { directory } = recordScript(space, 'echo new > ../outside/way/deep/file; echo new > a')
  space.sh('mv ../outside/way ../outside/real; ln -s real/way ../outside/way')
  const result = restore('--before', '--anywhere', directory)
  expect([result.status, result.stderr, result.stdout]).toEqual([
    3,
    '',
    expect.stringContaining(`something else is there, of which the bundle says nothing):\n  ${outside}/way\n`),
  ])
  expect(space.sh('cat a ../outside/real/way/deep/file')).toBe('old\nnew\n')
})

it('nothing is restored into the home of Savepoint, which no recording has', () => {
  space.write('kept', 'x\n')
  expect(savepoint(space, ['snapshot']).status).toBe(0)
  mkdirSync(join(space.base, 'outside'))
  const { directory } = recordScript(space, 'ln -s x ../outside/HEAD; mkdir ../outside/made; mkdir made')
  const manifest = join(directory, 'manifest.json')
  writeFileSync(
    manifest,
    readFileSync(manifest, 'utf8').replaceAll(join(space.base, 'outside'), join(space.home, 'store')),
  )
  space.sh('rmdir made')
  const names = () => readdirSync(join(space.home, 'store'))
  const there = names()
  const result = restore('--after', '--anywhere', '--force', directory)
  expect([result.status, result.stdout]).toEqual([
    3,
    expect.stringContaining(`Left alone (it belongs to Savepoint itself):\n  ${space.home}/store/HEAD\n`),
  ])
  expect([names(), existsSync(space.at('made'))]).toEqual([there, true])
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

gated(
  canMount,
  'root',
  'a filesystem that says no size (ramfs, as some of FUSE) is not full: target, bundle and home on it',
  () => {
    whileMounted('-t ramfs', () => {
      space.sh('mkdir mounted/dir; echo old > mounted/dir/file')
      const at = { cwd: space.at('mounted/dir'), env: { ...space.env, SAVEPOINT_HOME: space.at('mounted/home') } }
      const run = (...args: string[]) => {
        const { status, stderr } = savepoint(space, args, at)
        expect([status, stderr]).toEqual([0, expect.not.stringMatching(/INCOMPLETE|free|left/)])
      }
      run('snapshot')
      run('record', '-o', '../bundle', '--', 'sh', '-c', 'echo new > file; echo made > made')
      run('bundle', 'restore', '--before', '--in-place', '--yes', '../bundle')
      expect([readFileSync(space.at('mounted/dir/file'), 'utf8'), readdirSync(at.cwd)]).toEqual(['old\n', ['file']])
      space.sh('echo newer > mounted/dir/file')
      run('rollback', 'HEAD')
      expect(readFileSync(space.at('mounted/dir/file'), 'utf8')).toBe('old\n')
    })
  },
)

gated(
  canMount,
  'root',
  'where the command has shut a directory that something is mounted on, restoring that and back',
  () => {
    whileMounted('-t tmpfs -o size=1m', () => {
      space.sh('echo old > mounted/file; echo old > file')
      giveToUser(space)
      const run = (...args: string[]) => {
        const { status, stdout, stderr } = savepointAsUser(space, args)
        expect([status, stdout, stderr]).toEqual([0, expect.anything(), expect.not.stringContaining('Cannot')])
      }
      const looks = () => space.sh('stat -c %a mounted; cat file mounted/file; ls -A mounted')
      const before = looks()
      run('record', '-o', '../bundle', '--', 'sh', '-c', 'echo new > file; echo new > mounted/file; chmod 600 mounted')
      const after = looks()
      run('bundle', 'restore', '--before', '--in-place', '--yes', '../bundle')
      expect(looks()).toBe(before)
      run('bundle', 'restore', '--before', '--in-place', '--yes', '../bundle.undo')
      expect(looks()).toBe(after)
    })
  },
)
