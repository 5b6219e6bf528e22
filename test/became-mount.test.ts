/** A captured directory that becomes a nested subvolume or a mount point is not entered any more: not "nothing changed". */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { probeTracers } from '../src/tracers/select.ts'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { runCli } from './support/cli.ts'
import { canMount, gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const seesCalls = probeTracers().some(({ name, works }) => name === 'seccomp' && works)
const NOW = '(now a mount or nested subvolume, not captured any more)'

let space: Workspace
const cli = (...args: string[]) => runCli(space, args)
const runScript = (script: string) => cli('run', '--', 'sh', '-c', script)
const take = (...args: string[]) => cli('snapshot', '-q', ...args).stdout.trim()
const lastRun = () => cli('runs', '-q').stdout.split('\n')[0]!
const changesOf = (...args: string[]) =>
  JSON.parse(cli('diff', ...args, '--json').stdout).changes.map(
    ({ kind, path, after }: { kind: string; path: string; after: { reason: string | null } }) => [
      kind,
      path,
      after.reason,
    ],
  )

describe('a nested subvolume', () => {
  const onDisk = useScene(onBtrfs(), made => {
    space = made
    space.write('a')
    space.write('src/1', '1\n')
  })
  const convert = 'mv src old; btrfs subvolume create src; cp -a old/. src/; rm -rf old; echo new > src/new'

  onDisk('that a run puts in the place of a directory is named by the run, diff, show, status and undo', () => {
    const { stderr } = runScript(convert)
    const [, before] = /src changed and is not captured any more; (snap_\w+) has it as before\n/.exec(stderr)!
    expect(stderr).toMatch(/; 1 modified\n/)
    expect(stderr).toContain(`  T src/ ${NOW}\nTo undo: savepoint undo\n`)
    expect(cli('diff', lastRun(), '--name-status').stdout).toBe('T src/\n')
    expect(cli('diff', lastRun()).stdout).toBe('Directory src: captured -> mount\n')
    expect(changesOf(lastRun())).toEqual([['type-changed', 'src', 'mount']])
    expect(cli('status').stderr).toContain(`src changed and is not captured any more; ${before} has it as before`)

    const undone = cli('undo')
    const way = `mv src src.aside; savepoint revert src --from ${before}`
    expect(undone.status).toBe(3)
    expect(undone.stdout).toContain('  src: it is a nested subvolume now, which is not entered\n')
    expect(undone.stdout).toContain(`To put it back: ${way}\n`)
    space.sh('mv src src.aside')
    expect(cli('revert', 'src', '--from', before!).status).toBe(0)
    expect([space.read('src/1'), space.read('src/new'), space.read('src.aside/new')]).toEqual([
      '1\n',
      undefined,
      'new\n',
    ])
  })

  onDisk('that is moved away lets the undo be said again', () => {
    runScript(convert)
    expect(cli('undo').stdout).toContain('Not undone')
    space.sh('mv src ../aside')
    expect([cli('undo').status, space.read('src/1'), space.read('src/new')]).toEqual([0, '1\n', undefined])
  })

  onDisk(
    'is named outside of runs, too, also by a snapshot that the filesystem keeps; and when it is none any more',
    () => {
      const [one, two] = [take(), take('--label', 'two')]
      space.sh(convert)
      expect(cli('status').stdout).toContain(`Since then: 1 modified\n  T src/ ${NOW}\n`)
      const three = take()
      expect(cli('show', three).stdout).toMatch(/changes +1 modified\n(.*\n)* {2}T src\//)
      expect([changesOf(one, two), changesOf(two, three)]).toEqual([[], [['type-changed', 'src', 'mount']]])
      run('btrfs', 'subvolume', 'delete', space.at('src'))
      mkdirSync(space.at('src'))
      expect(cli('status').stdout).toContain('  T src/ (was a mount or nested subvolume, not captured)\n')
    },
  )

  onDisk('that a run makes is named, and so is it by the undo and by a rollback that leave it', () => {
    const one = take()
    const { stderr } = runScript('btrfs subvolume create vol; echo 1 > vol/f')
    expect(stderr).toContain('nothing that is protected changed\n')
    expect(stderr).toContain('NOT protected and made: vol (mount or subvolume; undo leaves it)\n')
    const stays = 'Stay, because they were not captured: vol (mount or subvolume)\n'
    for (const verb of [['undo'], ['rollback', one]]) expect(cli(...verb).stdout).toContain(stays)
    expect(space.read('vol/f')).toBe('1\n')
  })

  onDisk('that is the target, and that a run replaces by a plain directory: its files come back, which is all', () => {
    const said = 'a plain directory, which btrfs does not snapshot'
    const { stderr } = runScript('cd ..; btrfs subvolume delete work; mkdir work; echo > work/made')
    expect(stderr).toContain(`the run replaced the target directory by another one, ${said}`)
    expect(cli('undo').stderr).toContain(`the target was a subvolume, and stays ${said}: see docs/backends.md`)
    expect([space.read('src/1'), space.read('made')]).toEqual(['1\n', undefined])
  })

  onDisk('that is the target, and that a run goes back with by itself: also what is not captured is named', () => {
    const [keep, back] = ['btrfs subvolume snapshot -r . ../good', 'btrfs subvolume snapshot good work']
    space.write('.gitignore', '*.db\n')
    space.write('a.db', 'old')
    space.sh(keep)
    // By hand, before any run: from then on that is the target.
    space.sh(`cd ..; btrfs subvolume delete work; ${back}`)
    expect(runScript('echo PRECIOUS > a.db; echo 2 > src/1').stderr).not.toContain('replaced')
    const { stderr } = runScript(`cd ..; btrfs subvolume delete work; ${back}`)
    expect(stderr).toContain('the run replaced the target directory by another one\n')
    expect(stderr).toContain('NOT protected and changed: a.db (ignored; ')
    expect(cli('undo').stdout).toContain('NOT protected and changed: a.db (ignored; ')
    expect([space.read('a.db'), space.read('src/1')]).toEqual(['old', '2\n'])
    space.sh('btrfs subvolume delete ../good')
  })

  for (const script of [
    'btrfs subvolume delete vol/sub; btrfs subvolume create vol/sub',
    'btrfs subvolume delete vol/sub; btrfs subvolume snapshot ../other vol/sub',
    'mv vol old; mkdir vol; btrfs subvolume create vol/sub; rm -rf old',
  ])
    onDisk(`that a run deletes and makes again is another one, although it is empty: ${script}`, () => {
      space.sh('mkdir vol; btrfs subvolume create vol/sub; echo 1 > vol/sub/f; btrfs subvolume create ../other')
      const inner = runCli(space, ['snapshot', '-q'], { cwd: space.at('vol/sub') }).stdout.trim()
      take()
      const { stderr } = runScript(script)
      const named = 'NOT protected and changed: vol/sub (mount or subvolume; undo cannot take that back)\n'
      const way = `vol/sub has a timeline of its own: savepoint rollback ${inner} --force -t `
      expect(stderr).toContain(named)
      expect(stderr).toContain(way)
      expect(cli('undo').stdout).toContain(named)
      const why = cli('why', 'vol/sub').stdout
      if (script.includes('delete')) expect(why).toMatch(/btrfs subvolume (create|snapshot)/)
    })

  onDisk('that could not be made again, or that is moved away and back, is what it was', () => {
    space.sh('mkdir vol; btrfs subvolume create vol/sub')
    const { stderr } = runScript('btrfs subvolume create vol/sub; btrfs subvolume delete vol/none; mv vol v; mv v vol')
    expect(stderr).toContain('nothing changed')
    expect(stderr).not.toContain('NOT protected')
  })

  const GIVES_WAY = 'btrfs subvolume delete src; mkdir src'

  onDisk(
    'that a run deletes, with an empty directory in its place, is named, with the snapshot from before it was one',
    () => {
      const one = take()
      space.sh(convert)
      const { stderr } = runScript(GIVES_WAY)
      const named = 'NOT protected and changed: src (mount or subvolume; undo cannot take that back)\n'
      const way = `${one} has an older version of src: savepoint revert src --from ${one}\n`
      expect(stderr).toContain(named)
      expect(stderr).toContain(way)
      const undone = cli('undo')
      expect(undone.stdout).toContain(named)
      expect(undone.stderr).toContain(way)
      expect([cli('revert', 'src', '--from', one).status, space.read('src/1')]).toEqual([0, '1\n'])
    },
  )

  for (const script of [GIVES_WAY, 'btrfs subvolume delete src'])
    onDisk(`that is a target of its own has its own way back, which the run and the undo name: ${script}`, () => {
      space.sh(convert)
      take()
      const inner = runCli(space, ['snapshot', '-q'], { cwd: space.at('src') }).stdout.trim()
      const { stderr } = runScript(script)
      const [, ref, force] = /^savepoint: src has a timeline of its own: savepoint rollback (\S+)( --force)? -t /m.exec(
        stderr,
      )!
      expect([ref, force !== undefined]).toEqual([inner, script === GIVES_WAY])
      expect(cli('undo').stderr).toContain(`src has a timeline of its own: savepoint rollback ${inner}`)
      expect(cli('rollback', ref!, ...(force ? ['--force'] : []), '-t', space.at('src')).status).toBe(0)
      expect([space.read('src/1'), space.read('src/new')]).toEqual(['1\n', 'new\n'])
    })
})

describe('a mount', () => {
  beforeEach(() => {
    space = new Workspace()
    space.write('src/1', '1\n')
    space.write('a', 'a\n')
    space.write('b', 'b\n')
    mkdirSync(space.at('vol'))
  })
  afterEach(() => {
    for (const name of ['src', 'a', 'vol']) spawnSync('umount', [space.at(name)])
    space.remove()
  })
  const mounting = (title: string, work: () => void) =>
    gated(canMount && seesCalls, 'root, mounts, seccomp', title, work)

  mounting('that a run puts over a directory or a file is named as its work, with a way back that works', () => {
    const { stderr } = runScript('mount -t tmpfs none src; echo 2 > src/2; mount --bind b a; echo c > c')
    const [, before] = /a, src changed and are not captured any more; (snap_\w+) has them as before\n/.exec(stderr)!
    expect(stderr).toContain(`  T a ${NOW}\n  A c\n  T src/ ${NOW}\n`)
    const undone = cli('undo')
    expect([undone.status, space.read('c')]).toEqual([3, undefined])
    expect(undone.stdout).toContain('  src: something is mounted there, which is not entered\n')
    const way = `umount a src; savepoint revert a src --from ${before}`
    expect(undone.stdout).toContain(`To put them back, without what is only in memory there: ${way}\n`)
    space.sh('umount a src')
    expect(cli('revert', 'a', 'src', '--from', before!).status).toBe(0)
    expect([space.read('a'), space.read('src/1'), space.read('src/2')]).toEqual(['a\n', '1\n', undefined])
  })

  mounting('in the place of what a run deleted: once that is unmounted, the undo can be said again', () => {
    runScript('rm -r src; mkdir src; mount -t tmpfs none src')
    expect(cli('undo').stdout).toMatch(/^Not undone(.*\n)* {2}src: something is mounted there/)
    space.sh('umount src')
    expect([cli('undo').status, space.read('src/1')]).toEqual([0, '1\n'])
  })

  mounting('that was there before: what a run makes in it is named, unless it is gone again', () => {
    space.sh('mount -t tmpfs none vol')
    const unprotectedBy = (script: string) => /NOT protected.*/.exec(runScript(script).stderr)?.[0]
    const named = 'NOT protected and changed: vol (mount or subvolume; undo cannot take that back)'
    expect(unprotectedBy('echo 1 > vol/1; rm vol/1')).toBeUndefined()
    expect(unprotectedBy('echo 1 > vol/1')).toBe(named)
    expect(unprotectedBy('mkdir -p vol/x/y')).toBe(named)
    expect(cli('undo').stdout).toContain(named)
  })

  mounting('that a run takes away, with another one in its place, is named; not one that was mounted before', () => {
    space.sh('mount -t tmpfs none vol; echo 1 > vol/1')
    expect(runScript('echo 2 > src/1').stderr).not.toContain('NOT protected')
    const named = 'NOT protected and changed: vol (mount or subvolume; undo cannot take that back)\n'
    expect(runScript('umount vol; mount -t tmpfs none vol').stderr).toContain(named)
    expect(cli('undo').stdout).toContain(named)
  })

  mounting('that came between two runs is named by the next one', () => {
    const one = take()
    space.sh('mount -t tmpfs none src')
    expect(runScript('true').stderr).toContain(`src changed and is not captured any more; ${one} has it as before`)
    expect(runScript('true').stderr).not.toContain('not captured any more')
  })
})

describe('a mount while btrfs keeps a snapshot', () => {
  const onDisk = useScene(onBtrfs(), made => {
    space = made
    space.write('a')
    space.write('src/1', '1\n')
    space.write('src/deep/2', '2\n')
  })
  const whileMounted = async (work: () => Promise<void>) => {
    run('mount', '-t', 'tmpfs', 'none', space.at('src/deep'))
    try {
      await work()
    } finally {
      run('umount', space.at('src/deep'))
    }
  }
  const kindOf = (ref: string, path: string) => space.open().then(savepoint => savepoint.entry(ref, path)?.kind)

  onDisk('what lies under it is captured again when that is gone', async () => {
    await (await space.open()).snapshot({ label: 'before' })
    await whileMounted(async () => {
      await (await space.open()).snapshot({ label: 'mounted' })
      expect(await kindOf('mounted', 'src/deep')).toBe('unknown')
    })
    runScript('rm -rf src')
    expect(cli('undo').status).toBe(0)
    expect(space.read('src/deep/2')).toBe('2\n')
    await (await space.open()).snapshot({ label: 'after' })
    expect([await kindOf('after', 'src/deep'), changesOf('before', 'after')]).toEqual(['dir', []])
  })

  onDisk('one that came since the last is not captured', async () => {
    await (await space.open()).snapshot({ label: 'before' })
    await space.open()
    await whileMounted(async () => {
      space.write('a', 'other\n')
      await (await space.open()).snapshot({ label: 'mounted' })
      expect(await kindOf('mounted', 'src/deep')).toBe('unknown')
      expect(cli('status').stdout).toContain('Nothing changed since')
    })
  })

  const edit = () => space.sh('echo two > src/deep/2; rm src/deep/gone; echo new > src/deep/sub/new')
  const scenes: [string, () => Promise<void>][] = [
    [
      'under a mount',
      async () => {
        edit()
        await whileMounted(async () => void (await (await space.open()).snapshot({ label: 'without' })))
      },
    ],
    [
      'where rules left it out for a while',
      async () => {
        edit()
        space.write('src/.gitignore', 'deep\n')
        await (await space.open()).snapshot({ label: 'without' })
        await space.open()
        space.sh('rm src/.gitignore')
      },
    ],
  ]
  for (const [where, leaveOut] of scenes)
    onDisk(`what has changed ${where} is in the next`, async () => {
      space.write('src/deep/gone')
      space.write('src/deep/sub/3', '3\n')
      await (await space.open()).snapshot({ label: 'before' })
      await space.open()
      await leaveOut()
      await (await space.open()).snapshot({ label: 'after' })
      const savepoint = await space.open()
      expect(savepoint.read('after', 'src/deep/2').toString()).toBe('two\n')
      expect(['gone', 'sub/new'].map(name => savepoint.entry('after', `src/deep/${name}`)?.kind)).toEqual([
        undefined,
        'file',
      ])
      expect((await savepoint.changes()).changes).toEqual([])
    })
})
