/** `bundle restore --in-place` in several directories at once: all of it is done or nothing, and what was killed is known. */
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Bundle, type BundleRestoreOptions, type BundleRestoreResult, restoreBundle } from '../src/record/index.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { giveToUser, savepoint, savepointAsUser } from './support/built-cli.ts'
import { canMount, gated } from './support/machine.ts'
import { recordScript } from './support/recorded.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const at = (name: string) => join(space.base, name)
const args = (...rest: string[]) => ['bundle', 'restore', '--before', '--in-place', '--anywhere', '--yes', ...rest]
const restore = (...rest: string[]) => savepoint(space, args(...rest))
const failing = (point: string, ...rest: string[]) =>
  savepoint(space, args(...rest), { env: { ...space.env, SAVEPOINT_FAILPOINT: point } })
const stages = () =>
  [space.dir, at('outside')].filter(existsSync).flatMap(directory =>
    readdirSync(directory)
      .filter(name => name.startsWith('.savepoint-stage'))
      .map(name => join(directory, name)),
  )
const notes = () => readdirSync(join(space.home, 'restores'))
const undoBundles = () => readdirSync(space.base).filter(name => name.includes('.undo'))
const images = () =>
  new Map([...imageOf(space.dir)].concat([...imageOf(at('outside'))].map(([k, v]) => [`../${k}`, v])))

/** In this process. */
async function restoreHere(options: Partial<BundleRestoreOptions>): Promise<BundleRestoreResult> {
  const bundle = new Bundle(at('bundle'))
  const { home, env } = space
  const all = { anywhere: false, force: false, withGit: false, dryRun: false, home, env, confirm: async () => true }
  try {
    return await restoreBundle(bundle, { ...all, side: 'before', ...options })
  } finally {
    bundle.close()
  }
}

/** Records changes in the working directory and in one outside of it. */
function change(): { before: Map<string, string>; after: Map<string, string> } {
  mkdirSync(at('outside'))
  space.sh(`for i in . ../outside; do echo old > $i/a; mkdir -p $i/dir/shut; echo gone > $i/gone; echo in > $i/dir/shut/in; done
    chmod 640 a; chmod 500 dir/shut; chmod 500 ../outside/dir/shut`)
  giveToUser(space)
  const before = images()
  const script = `for i in . ../outside; do echo new > $i/a; rm $i/gone; chmod 700 $i/dir/shut; rm $i/dir/shut/in; mkdir $i/made; echo x > $i/made/x; chmod 500 $i/dir/shut $i/made; done`
  const recorded = savepointAsUser(space, ['record', '-o', at('bundle'), '--', 'sh', '-ec', script])
  expect([recorded.status, recorded.stderr]).toEqual([0, expect.not.stringContaining('INCOMPLETE')])
  return { before, after: images() }
}

gated(canMount, 'root', 'where one of two filesystems has no room, nothing is changed on either', () => {
  space.write('a', 'before\n')
  mkdirSync(space.at('mounted'))
  space.sh('mount -t tmpfs -o size=2m none mounted')
  try {
    space.sh('head -c 1000000 /dev/urandom > mounted/large')
    recordScript(space, 'echo after > a; rm mounted/large; echo made > mounted/made', { name: 'bundle' })
    space.sh('head -c 1500000 /dev/urandom > mounted/filler')
    const after = imageOf(space.dir, { untouched: true })
    const result = savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')])
    expect([result.status === 0, result.stderr]).toEqual([
      false,
      expect.stringMatching(/the disk has .* left \(in .*\/mounted\)[\s\S]*nothing was changed/),
    ])
    expect(
      differences(after, imageOf(space.dir, { untouched: true })).filter(line => !/^(mounted)?: dir/.test(line)),
    ).toEqual([])
    expect([notes(), undoBundles()]).toEqual([[], []])
  } finally {
    space.sh('umount mounted')
  }
})

it.each(['restore:staged#2', 'restore:place#3', 'restore:place#4', 'restore:displace#2'])(
  'what fails at %s is taken back everywhere',
  point => {
    const { after } = change()
    const env = { ...space.env, SAVEPOINT_FAILPOINT: `${point}@EIO` }
    const result = savepointAsUser(space, args(at('bundle')), { env })
    expect([result.status === 0, result.stderr]).toEqual([false, expect.stringContaining('Nothing was changed')])
    expect(differences(after, images())).toEqual([])
    expect([stages(), notes(), undoBundles()]).toEqual([[], [], []])
  },
)

it('what cannot be taken back is named, with the commands that finish it or take it back', () => {
  const { before, after } = change()
  const fail = () => failing('restore:place#3@EIO,restore:reverse@EIO', at('bundle'))
  const undo = (name: string) => `savepoint bundle restore --before --in-place --anywhere --force ${at(name)}`
  const failed = fail()
  expect(failed.status).not.toBe(0)
  expect(failed.stderr).toContain('part of it was carried out, elsewhere nothing was changed')
  expect(failed.stderr).toContain(`\`${undo('bundle.undo')}\` takes it back`)
  expect(stages().length).toBe(1)
  expect([restore(at('bundle')).status, stages(), notes()]).toEqual([0, [], []])
  expect(differences(before, images())).toEqual([])
  expect(savepoint(space, ['bundle', 'restore', '--in-place', '--anywhere', '--yes', at('bundle')]).status).toBe(0)
  space.sh('rm -r ../*.undo*')
  fail()
  expect([restore('--force', at('bundle.undo')).status, stages(), notes()]).toEqual([0, [], []])
  expect(differences(after, images())).toEqual([])
})

it('when only the stage cannot be removed in the end, that is said, and the same command does it', () => {
  const { before } = change()
  const failed = failing('restore:rescued@EIO', at('bundle'))
  expect([failed.status === 0, failed.stderr]).toEqual([false, expect.stringContaining('Everything is in place, but')])
  expect([differences(before, images()).filter(line => !line.includes('.savepoint-stage')), stages().length]).toEqual([
    [],
    1,
  ])
  expect([restore(at('bundle')).status, stages(), notes()]).toEqual([0, [], []])
  expect(differences(before, images())).toEqual([])
})

describe('killed', () => {
  it.each([
    ...['restore:stage', 'restore:stage#2', 'restore:staged#2', 'restore:place#1', 'restore:place#4'],
    ...['restore:displaced#2', 'restore:placed', 'restore:cleaned', 'restore:rescued#2'],
  ])('at %s it is finished by the same command, or taken back by the undo bundle', point => {
    const { before, after } = change()
    const kill = () => expect(failing(point, at('bundle')).signal).toBe('SIGKILL')
    kill()
    expect([restore(at('bundle')).status, stages(), notes()]).toEqual([0, [], []])
    expect(differences(before, images())).toEqual([])
    expect(savepoint(space, ['bundle', 'restore', '--in-place', '--anywhere', '--yes', at('bundle')]).status).toBe(0)
    space.sh('rm -r ../*.undo*')
    kill()
    expect([restore('--force', at('bundle.undo')).status, stages(), notes()]).toEqual([0, [], []])
    expect(differences(after, images())).toEqual([])
  })

  it.each([1, 2, 3])(
    'between taking something away and putting another type in its place (%i), it is finished',
    count => {
      space.sh('mkfifo fifo; mkdir dir; echo in > dir/in; echo file > file')
      const before = imageOf(space.dir)
      recordScript(space, 'rm -r fifo dir file; mkdir fifo file; echo x > fifo/x; echo y > dir', { name: 'bundle' })
      expect(failing(`restore:displaced#${count}`, at('bundle')).signal).toBe('SIGKILL')
      const again = restore(at('bundle'))
      expect([again.status, again.stderr]).toEqual([0, ''])
      expect(differences(before, imageOf(space.dir))).toEqual([])
    },
  )

  const truncateStaged = () => {
    const files = stages().flatMap(stage => space.sh(`find '${stage}' -type f -size +1c`).trim().split('\n'))
    expect(files.length).toBeGreaterThan(2)
    for (const file of files) truncateSync(file, 1)
  }

  it('what was half written before anything was changed is known to be of no use', () => {
    const { before } = change()
    expect(failing('restore:staged#2', at('bundle')).signal).toBe('SIGKILL')
    truncateStaged()
    expect([restore(at('bundle')).status, stages(), notes()]).toEqual([0, [], []])
    expect(differences(before, images())).toEqual([])
  })

  it('another restore tells of one that changed nothing, and removes what it left in the same directory', () => {
    change()
    expect(failing('restore:staged#2', at('bundle')).signal).toBe('SIGKILL')
    truncateStaged()
    recordScript(space, 'echo other > b', { name: 'other' })
    const other = restore(at('other'))
    expect([other.status, other.stderr]).toEqual([0, expect.stringContaining('was killed before it changed anything')])
    expect(stages()).toEqual([expect.stringContaining('outside')])
    expect([restore(at('bundle')).status, stages(), notes()]).toEqual([0, [], []])
  })

  it('what holds something that is nowhere else is named each time, until it is removed', () => {
    change()
    expect(failing('restore:placed', at('bundle')).signal).toBe('SIGKILL')
    const [kept] = stages() as [string]
    const displaced = space.sh(`grep -rlx new '${kept}'`).trim()
    writeFileSync(displaced, 'edited meanwhile\n')
    for (let i = 0; i < 2; i++) {
      const again = restore(at('bundle'))
      expect([again.status, again.stdout]).toEqual([
        3,
        expect.stringContaining(`nowhere else: look at it, and remove it):\n  ${kept}\n`),
      ])
      expect([stages(), notes().length, readFileSync(displaced, 'utf8')]).toEqual([[kept], 1, 'edited meanwhile\n'])
    }
    space.sh(`rm -r '${kept}'`)
    expect([restore(at('bundle')).status, notes()]).toEqual([0, []])
  })

  it.each([
    ['ours', process.pid],
    ['that of another one', process.ppid],
  ])('by a process whose number is %s by now, as in a container, it is known as well', async (_, pid) => {
    const { before } = change()
    expect(failing('restore:placed', at('bundle')).signal).toBe('SIGKILL')
    for (const name of notes()) {
      const file = join(space.home, 'restores', name)
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), pid }))
    }
    await restoreHere({ anywhere: true })
    expect([stages(), notes()]).toEqual([[], []])
    expect(differences(before, images())).toEqual([])
  })

  it('what its user cannot read in a stage is looked at, and goes', () => {
    space.sh('echo one > a; mkdir dir; echo two > dir/b')
    giveToUser(space)
    const run = (env: NodeJS.ProcessEnv) => savepointAsUser(space, args(at('bundle')), { env })
    savepointAsUser(space, [
      'record',
      '-o',
      at('bundle'),
      '--',
      'sh',
      '-ec',
      'chmod 0 a; mkdir made; echo x > made/x; chmod 0 made',
    ])
    expect(run({ ...space.env, SAVEPOINT_FAILPOINT: 'restore:placed' }).signal).toBe('SIGKILL')
    expect([run(space.env).status, notes()]).toEqual([0, []])
    expect(readdirSync(space.dir).sort()).toEqual(['a', 'dir'])
  })
})

it('a directory that is gone when it comes to it is told, and nothing is changed', async () => {
  space.write('a', 'before\n')
  recordScript(space, 'echo after > a', { name: 'bundle' })
  const bundle = new Bundle(at('bundle'))
  const { home, env } = space
  const confirm = async () => {
    space.sh('mv $PWD ../elsewhere')
    return true
  }
  const options = { anywhere: false, force: false, withGit: false, dryRun: false, home, env, confirm }
  await expect(restoreBundle(bundle, { ...options, side: 'before' })).rejects.toMatchObject({
    code: 'target.missing',
    hint: expect.stringContaining('Nothing was changed'),
  })
  bundle.close()
  expect([undoBundles(), readFileSync(at('elsewhere/a'), 'utf8')]).toEqual([[], 'after\n'])
})

it('two at once: the second waits, and finds it done', async () => {
  const { before } = change()
  const bundle = new Bundle(at('bundle'))
  const { home, env } = space
  const options = { anywhere: true, force: false, withGit: false, dryRun: false, confirm: async () => true, home, env }
  const started: Promise<unknown>[] = []
  const stop = onFailpoint('restore:placing', () => {
    if (started.length === 1) started.push(restoreBundle(bundle, { ...options, side: 'before' }))
  })
  try {
    started.push(restoreBundle(bundle, { ...options, side: 'before' }))
    await started[0]
    expect(await started[1]).toMatchObject({ changes: [], leftAlone: [], undo: undefined })
    expect(differences(before, images())).toEqual([])
    expect(undoBundles()).toEqual(['bundle.undo'])
  } finally {
    stop()
    bundle.close()
  }
})

it('stopped while it waits for another one, or asks, it changes nothing', async () => {
  const { before, after } = change()
  const stop = new AbortController()
  const cancelled = { code: 'cancelled' }
  const confirm = async () => {
    const waiting = restoreHere({ anywhere: true, signal: stop.signal })
    stop.abort()
    await expect(waiting).rejects.toMatchObject(cancelled)
    return true
  }
  await expect(restoreHere({ anywhere: true, confirm, signal: stop.signal })).rejects.toMatchObject(cancelled)
  expect([differences(after, images()), undoBundles()]).toEqual([[], []])
  await restoreHere({ anywhere: true })
  expect(differences(before, images())).toEqual([])
})

it('stopped while it stages, it changes nothing, and nothing is left', async () => {
  const { before, after } = change()
  const stop = new AbortController()
  const unstoppable: boolean[] = []
  // In the first of two directories.
  const unlisten = onFailpoint('restore:staged', () => stop.abort())
  const stopped = restoreHere({ anywhere: true, signal: stop.signal, onUnstoppable: value => unstoppable.push(value) })
  await expect(stopped).rejects.toMatchObject({ code: 'cancelled', message: 'Cancelled: nothing was changed' })
  unlisten()
  expect([differences(after, images()), undoBundles(), stages(), notes(), unstoppable]).toEqual([[], [], [], [], []])
  await restoreHere({ anywhere: true })
  expect(differences(before, images())).toEqual([])
})

describe.each(['confirm', 'restore:placing'])('what somebody makes before it is done (%s)', moment => {
  const during = async (script: string, onMade = () => {}) => {
    const bundle = new Bundle(at('bundle'))
    const { home, env } = space
    const act = () => {
      space.sh(script)
      onMade()
    }
    const stop = moment === 'confirm' ? () => {} : onFailpoint(moment, act)
    const confirm = async () => {
      if (moment === 'confirm') act()
      return true
    }
    try {
      const options = { anywhere: false, force: false, withGit: false, dryRun: false, home, env, confirm }
      return await restoreBundle(bundle, { ...options, side: 'before' })
    } finally {
      stop()
      bundle.close()
    }
  }

  it.each([
    ['a file in a directory that goes', 'echo edit > made/new', 'made/new'],
    ['a file deep in a directory that goes', 'mkdir made/deep/er; echo edit > made/deep/er/new', 'made/deep/er/new'],
    ['a file in a directory that goes, instead', 'echo edit > made/x', 'made/x'],
    ['a file instead of a link', 'rm link; echo edit > link', 'link'],
    ['a file instead of a directory', 'rm -r made; echo edit > made', 'made'],
    ['a directory instead of a file', 'rm a; mkdir a; echo edit > a/new', 'a/new'],
    ['a file in a directory that becomes something else', 'echo edit > was/new', 'was/new'],
  ])('%s stays', async (_, script, path) => {
    space.sh('echo before > a; echo before > was; ln -s before link')
    recordScript(space, 'mkdir -p made/deep; echo x > made/x; echo after > a; ln -sf after link; rm was; mkdir was', {
      name: 'bundle',
    })
    const result = await during(script)
    expect(result.leftAlone.map(each => each.why)).toEqual(['edited'])
    expect(result.changes.filter(each => each.path === result.leftAlone[0]!.path)).toEqual([])
    expect([space.read(path), stages(), notes()]).toEqual(['edit\n', [], []])
  })

  it.each([
    ['attributes of a file that is replaced', 'chmod 600 a'],
    ['attributes in a directory that goes', 'chmod 600 made/x'],
    ['attributes of a file that would get others', 'chmod 444 meta'],
    ['the time of a file that would get other attributes', 'echo edit > meta'],
    ['a directory instead of it', 'rm meta; mkdir meta'],
    ['a link instead of it', 'rm meta; ln -s a meta'],
    ['attributes of a directory that would get others', 'chmod 711 dir'],
    ['an extended attribute of a file that is replaced', 'setfattr -n user.by -v somebody a'],
    ['one of a file that would get others', 'setfattr -n user.by -v somebody meta'],
    ['one in a directory that goes', 'setfattr -n user.by -v somebody made/x'],
    ['a link instead of that', 'rmdir dir; ln -s made dir'],
  ])('%s: stays', async (_, script) => {
    space.sh('echo before > a; echo meta > meta; mkdir dir; chmod 644 meta; chmod 755 dir')
    recordScript(space, 'mkdir made; echo x > made/x; echo after > a; chmod 640 meta; chmod 750 dir', {
      name: 'bundle',
    })
    const edited = script.replace(/.* /, '')
    let made: Map<string, string> | undefined
    const result = await during(script, () => {
      made = imageOf(space.dir)
    })
    const left = edited === 'made/x' ? 'made' : edited
    expect(result.leftAlone).toEqual([{ path: space.at(left), why: 'edited' }])
    expect(result.changes.map(each => each.path)).not.toContain(space.at(left))
    expect([imageOf(space.dir).get(edited), stages(), notes()]).toEqual([made!.get(edited), [], []])
  })
})

it('what somebody makes meanwhile where something is to come stays', async () => {
  space.write('gone', 'before\n')
  recordScript(space, 'rm gone', { name: 'bundle' })
  const bundle = new Bundle(at('bundle'))
  const stop = onFailpoint('restore:placing', () => space.write('gone', 'made meanwhile\n'))
  try {
    const options = { anywhere: false, force: false, withGit: false, dryRun: false, confirm: async () => true }
    const { home, env } = space
    const result = await restoreBundle(bundle, { ...options, home, env, side: 'before' })
    expect(result.leftAlone).toEqual([{ path: space.at('gone'), why: 'edited' }])
    expect([space.read('gone'), readdirSync(space.dir)]).toEqual(['made meanwhile\n', ['gone']])
  } finally {
    stop()
    bundle.close()
  }
})

it('what somebody puts in the place of a directory while it asks is said, and nothing is changed', async () => {
  for (const [script, why] of [
    ['ln -s e d', 'there is a link now where a directory was'],
    ['true', 'it is gone now, or a directory above it'],
    ['echo x > d', 'there is something else now where a directory was'],
  ]) {
    space.sh('rm -rf d e; mkdir d; echo 1 > d/f')
    recordScript(space, 'echo 2 >> d/f; echo new > d/n', { name: 'bundle', args: ['--force'] })
    const confirm = async () => space.sh(`mv d e; ${script}`) === ''
    await expect(restoreHere({ confirm })).rejects.toThrow(new RegExp(`^Cannot restore d/[fn]: ${why}$`))
    expect([space.read('e/f'), space.read('e/n'), undoBundles(), stages()]).toEqual(['1\n2\n', 'new\n', [], []])
  }
})
