/** R14: an agent destroys the repository, or the workspace it stands in. Everything comes back. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRun, untilLater } from './support/background-run.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.sh(`git init -q -b main .; printf 'cache/\n' > .gitignore; mkdir -p src/deep cache; echo 1 > src/deep/a; echo s > .env
    echo big > cache/x; git add .; git commit -qm one; echo 2 > src/deep/a; ln -s src link; chmod 700 src; chmod 751 .`)
})
afterEach(() => space.remove())

const uncaptured = (path: string) => path === 'cache'

describe('a run that destroys', () => {
  const ways: [string, string][] = [
    ['rm -rf .git', 'rm -rf .git'],
    ['everything but itself', 'rm -rf ./* ./.[!.]*'],
    [
      'git reset --hard and git clean',
      'git reset -q --hard; git clean -qfdx -e cache; git checkout -q --orphan x; git rm -rqf .',
    ],
    [
      'all contents emptied in place',
      'find . -type f -not -path "./cache/*" -exec sh -c \': > "$0"\' {} \\; 2>/dev/null',
    ],
    ['directories made files and files directories', 'rm -rf src .env; echo file > src; mkdir .env; echo x > .env/x'],
    ['all names changed', 'mv src tmp; mv .git git; mv tmp/deep tmp/flat; mv .env env'],
    ['the tree replaced by a link to nowhere', 'rm -rf src; ln -s /nonexistent src; rm -rf .git; ln -s / .git'],
  ]
  for (const [what, script] of ways) {
    it(`${what}: undo brings it all back`, async () => {
      const savepoint = await space.open()
      const before = imageOf(space.dir, { skip: uncaptured })
      await savepoint.run({ command: ['sh', '-c', script] })
      expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).not.toEqual([])
      const { restore } = await savepoint.undo()
      expect(restore!.leftAlone).toEqual([])
      expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
      expect(space.git('fsck', '--full')).toBe('')
      expect(space.git('status', '--porcelain')).toBe(' M src/deep/a\n?? link\n')
    })
  }
})

describe('a file with several names', () => {
  const setup = 'echo a > x; ln x y; ln x z; mkdir sub; ln x sub/x'
  it.each([
    ['one after the other', 'rm x y; sleep 1.2; rm z sub/x'],
    ['by find', 'find . -name .git -prune -o -type f -links -9 -delete'],
    ['with the target', 'cd /; rm -rf "$W"'],
    ['and written by the one that is left', 'rm x y z; echo b >> sub/x'],
    ['that the run has made', 'ln x w; sleep 1.2; rm w x; sleep 1.2; rm y z sub/x'],
  ])("that the run removes %s is nobody else's work", async (_, script) => {
    space.sh(setup)
    const savepoint = await space.open()
    await savepoint.run({ command: ['sh', '-c', `W='${space.dir}'; ${script}`] })
    expect((await savepoint.undo()).restore!.mixed).toEqual([])
    expect(statSync(space.at('x')).nlink).toBe(4)
  })

  it('edited by somebody else is named', async () => {
    space.sh(setup)
    const run = await startRun(space, 'rm x; echo READY; read go; rm y z sub/x')
    await untilLater(space, run.id)
    space.write('z', 'edited by hand')
    run.say('go')
    await run.ended
    expect(runCli(space, ['undo']).stdout).toMatch(/May have been edited by somebody else .*: (y|z|sub\/x)/)
  })
})

describe('modes taken away', () => {
  const script = 'chmod 000 src/deep/a src .git/HEAD .git'
  const isRoot = process.getuid?.() === 0

  it.skipIf(!isRoot)(`come back by undo${isRoot ? '' : ' (skipped: needs root)'}`, async () => {
    const savepoint = await space.open()
    const before = imageOf(space.dir, { skip: uncaptured })
    await savepoint.run({ command: ['sh', '-c', script] })
    expect((await savepoint.undo()).restore!.leftAlone).toEqual([])
    expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
  })

  it.skipIf(!canDropPrivilege)(
    `come back for an ordinary user, too${canDropPrivilege ? '' : ' (skipped: needs setpriv)'}`,
    async () => {
      const before = imageOf(space.dir, { skip: uncaptured })
      const ran = await runAsUser(space, [['run', { command: ['sh', '-c', script] }]])
      expect(ran.error).toBeUndefined()
      expect(statSync(join(space.dir, 'src')).mode & 0o777).toBe(0)
      const undone = await runAsUser(space, [['undo']])
      expect(undone.error).toBeUndefined()
      expect(undone.results[0].restore.leftAlone).toEqual([])
      expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
    },
  )
})

describe('rm -rf of the whole workspace from inside the run', () => {
  it('is taken back by undo, from where the workspace was', async () => {
    const savepoint = await space.open()
    const before = imageOf(space.dir, { skip: uncaptured })
    const { counts, after } = await savepoint.run({ command: ['sh', '-c', `cd /; rm -rf '${space.dir}'; exit 3`] })
    expect(existsSync(space.dir)).toBe(false)
    expect([counts.added, after!.files]).toEqual([0, 0])
    expect(space.notices).toContainEqual(expect.stringContaining('deleted the target directory'))
    await savepoint.undo()
    expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
    expect(space.git('fsck', '--full')).toBe('')
    // The timeline goes on: the directory that was made again is its target.
    const again = await space.open()
    expect(again.timeline).toBe(savepoint.timeline)
    await again.snapshot()
    await again.redo()
    expect([...imageOf(space.dir).keys()]).toEqual([''])
    expect((await again.verify()).problems).toEqual([])
  })

  it('on the command line, from a shell that still stands in it', () => {
    const before = imageOf(space.dir, { skip: uncaptured })
    const savepoint = cliCommand.map(word => `'${word}'`).join(' ')
    const script = `${savepoint} run -- sh -c 'rm -rf "$0"; exit 4' "$PWD"; echo "code $?"; test ! -e "$PWD"
      ${savepoint} undo; echo "code $?"; cd "$PWD"; cat src/deep/a`
    const { stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: space.dir, env: space.env, encoding: 'utf8' })
    expect(stdout).toMatch(/^code 4\n.*code 0\n2\n$/s)
    expect(stderr).toContain('made again')
    expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
  })

  it('together with its parents', async () => {
    const nested = join(space.base, 'x/y/z')
    space.sh(`mkdir -p ../x/y; cp -a . ../x/y/z`)
    const savepoint = await space.open({ cwd: nested })
    const before = imageOf(nested, { skip: uncaptured })
    await savepoint.run({ command: ['sh', '-c', `rm -rf '${join(space.base, 'x')}'`] })
    await savepoint.undo()
    expect(differences(before, imageOf(nested, { skip: uncaptured }))).toEqual([])
  })

  const swap = (a: string, b: string) =>
    `python3 -c 'import ctypes, os, sys; a, b = map(os.fsencode, sys.argv[1:]); ctypes.CDLL(None).renameat2(-100, a, -100, b, 2)' ${a} ${b}`
  it.each([
    ['made', 'mv $W $W.old; mkdir $W; echo new > $W/new'],
    ['moved', 'mkdir $W.new; echo new > $W.new/new; mv $W $W.old; mv $W.new $W'],
    ['exchanged', `mkdir $W.new; echo new > $W.new/new; ${swap('$W.new', '$W')}`],
    ['exchanged the other way round', `mkdir $W.new; echo new > $W.new/new; ${swap('$W', '$W.new')}`],
  ])('and another directory %s in its place by the run is ours to undo', async (_, script) => {
    const savepoint = await space.open()
    const before = imageOf(space.dir, { skip: uncaptured })
    const { ino } = statSync(space.dir)
    await savepoint.run({ command: ['sh', '-c', `cd /; W='${space.dir}'; ${script}`] })
    expect(statSync(space.dir).ino).not.toBe(ino)
    expect(space.notices).toContainEqual(expect.stringContaining('the run replaced the target directory'))
    const { restore } = await savepoint.undo()
    expect([restore!.leftAlone, restore!.mixed]).toEqual([[], []])
    expect(differences(before, imageOf(space.dir, { skip: uncaptured }))).toEqual([])
    await savepoint.redo()
    expect([...imageOf(space.dir).keys()]).toEqual(['', 'new'])
  })

  it('and what somebody writes into that meanwhile is named', async () => {
    const run = await startRun(
      space,
      `cd /; W='${space.dir}'; mkdir $W.new; echo 1 > $W.new/one; echo 2 > $W.new/two; mv $W $W.old; mv $W.new $W; echo READY; read go`,
    )
    await untilLater(space, run.id)
    space.write('two', 'edited by hand')
    run.say('go')
    await run.ended
    const { stdout } = runCli(space, ['undo'])
    expect(stdout).toMatch(/May also hold somebody else's edit, .*: two\n/)
    expect([space.read('src/deep/a'), space.read('two')]).toEqual(['2\n', undefined])
  })
})
