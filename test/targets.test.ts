/** Which timeline a directory belongs to: found above, moved, replaced, missing, refused, nested. */
import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runCli } from './support/cli.ts'
import { runVerbs } from './support/engine-process.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('frontend/src/app', 'one')
  space.write('backend/server', 'one')
})
afterEach(() => space.remove())

describe('the nearest ancestor', () => {
  it('is found from below, and says so', async () => {
    const above = await space.open()
    const { id } = await above.snapshot()
    const savepoint = await space.open({ cwd: space.at('frontend/src'), create: false })
    expect(savepoint).toMatchObject({
      target: space.dir,
      timeline: above.timeline,
      foundAbove: true,
      subdirectory: 'frontend/src',
    })
    expect(savepoint.head().id).toBe(id)
    expect(above).toMatchObject({ foundAbove: false, subdirectory: '' })
  })

  it('is not made up: without a timeline there is an error with a code of its own, and nothing is created', async () => {
    await expect(space.open({ create: false })).rejects.toMatchObject({ code: 'timeline.none', exitCode: 10 })
    await space.open({ cwd: space.at('frontend') })
    await expect(space.open({ create: false })).rejects.toMatchObject({ code: 'timeline.none' })
    await expect(space.open({ cwd: space.at('backend'), create: false })).rejects.toMatchObject({
      code: 'timeline.none',
    })
  })

  it('a path that does not exist, or is no directory, is an error of its own: no snapshot would help', async () => {
    const missing = { code: 'target.missing', exitCode: 1 }
    await expect(space.open({ target: 'nowhere', create: false })).rejects.toMatchObject({
      ...missing,
      message: `Cannot use ${space.at('nowhere')}: the directory does not exist`,
      hint: expect.stringContaining('--target'),
    })
    await expect(space.open({ target: 'backend/server', create: false })).rejects.toMatchObject({
      ...missing,
      message: `Cannot use ${space.at('backend/server')}: it is not a directory`,
      hint: 'Name the directory that it lies in',
    })
  })

  it('can be asked about before there is one; what would need it is refused and leaves nothing', async () => {
    const asked = await space.open({ create: false, provisional: true })
    expect(await asked.coverage('backend/server')).toMatchObject({ covered: true, isBeforeFirst: true, versions: 0 })
    const none = { code: 'timeline.none', exitCode: 10 }
    await expect(asked.snapshot()).rejects.toMatchObject(none)
    await expect(asked.run({ command: ['true'] })).rejects.toMatchObject({ cause: none })
    expect(() => asked.tag('x')).toThrow()
    expect(existsSync(space.home)).toBe(false)
    const made = await space.open()
    const { id } = await made.snapshot()
    expect((await space.open({ create: false, provisional: true })).head().id).toBe(id)
  })

  it('loses to a nearer one: a timeline inside another is its own', async () => {
    const outer = await space.open()
    const inner = await space.open({ target: 'frontend' })
    expect(inner.timeline).not.toBe(outer.timeline)
    expect((await space.open({ cwd: space.at('frontend/src') })).timeline).toBe(inner.timeline)
    expect((await space.open({ cwd: space.at('backend') })).timeline).toBe(outer.timeline)
    const before = await inner.snapshot()
    await outer.snapshot()
    space.write('frontend/src/app', 'two')
    space.write('backend/server', 'two')
    await inner.rollback(before.id)
    expect([space.read('frontend/src/app'), space.read('backend/server')]).toEqual(['one', 'two'])
    expect(outer.snapshots()).toHaveLength(1)
  })
})

describe('a timeline inside another, whose directory the outer one makes anew', () => {
  async function innerAndOuter() {
    const outer = await space.open()
    const inner = await space.open({ target: 'frontend/src' })
    const kept = await inner.snapshot()
    const whole = await outer.snapshot()
    space.write('frontend/src/app', 'two')
    return { outer, inner, kept, whole }
  }

  it.each(['rm -r frontend', 'rm -r frontend/src; echo file > frontend/src'])(
    'after `%s`: the inner one goes on without --force, in an open process too',
    async destroy => {
      const { outer, inner, kept, whole } = await innerAndOuter()
      space.sh(destroy)
      await outer.rollback(whole.id)
      const again = await space.open({ cwd: space.at('frontend/src'), create: false })
      expect(again.timeline).toBe(inner.timeline)
      space.write('frontend/src/app', 'three')
      await again.rollback(kept.id)
      expect(space.read('frontend/src/app')).toBe('one')
      await inner.snapshot()
    },
  )

  it('by an undo, and by a rollback of a path below it', async () => {
    const { outer, inner, kept } = await innerAndOuter()
    const { run } = await outer.run({ command: ['rm', '-r', 'frontend'] })
    await outer.undo()
    await inner.rollback(kept.id)
    expect(space.read('frontend/src/app')).toBe('one')
    space.sh('rm -r frontend')
    await outer.rollback(run!.before!, { paths: ['frontend/src/app'] })
    await inner.rollback(kept.id)
    expect(space.read('frontend/src/app')).toBe('one')
  })

  it('by a rollback that was killed before it could say so', async () => {
    const { inner, kept, whole } = await innerAndOuter()
    space.sh('rm -r frontend')
    const killed = await runVerbs(space, [['rollback', whole.id]], { failpoint: 'restore:synced' })
    expect(killed.signal).toBe('SIGKILL')
    await space.open({ create: false })
    await inner.rollback(kept.id)
    expect(space.read('frontend/src/app')).toBe('one')
  })

  it('is still refused when somebody else has replaced it', async () => {
    const { outer, inner, kept, whole } = await innerAndOuter()
    space.sh('mv frontend/src away; mkdir frontend/src')
    await outer.rollback(whole.id)
    await expect(inner.rollback(kept.id)).rejects.toMatchObject({ code: 'target.replaced' })
  })
})

describe('R9: started in frontend/', () => {
  it('a rollback touches nothing in backend/ unless it is told to', async () => {
    const { id } = await (await space.open()).snapshot()
    space.write('frontend/src/app', 'two')
    space.write('frontend/new')
    space.write('backend/server', 'two')
    space.write('top')
    space.sh('chmod 700 .')
    const outside = () =>
      imageOf(space.dir, { untouched: true, skip: path => path === '' || path.startsWith('frontend') })
    const before = [imageOf(space.at('backend'), { untouched: true }), outside()]
    const savepoint = await space.open({ cwd: space.at('frontend') })
    const plan = await savepoint.rollback(id, { dryRun: true })
    expect(plan.changes.map(({ path }) => path)).toEqual(['frontend/new', 'frontend/src/app'])
    await savepoint.rollback(id)
    expect([space.read('frontend/src/app'), existsSync(space.at('frontend/new'))]).toEqual(['one', false])
    expect(differences(before[0]!, imageOf(space.at('backend'), { untouched: true }))).toEqual([])
    expect(space.read('top')).toBe('top\n')
    await savepoint.undo()
    expect([space.read('frontend/src/app'), space.read('backend/server')]).toEqual(['two', 'two'])
    await savepoint.rollback(id, { all: true })
    expect([space.read('frontend/src/app'), space.read('backend/server'), space.read('top')]).toEqual([
      'one',
      'one',
      undefined,
    ])
  })

  it('a directory that is made the target keeps its neighbours out of the store', async () => {
    const savepoint = await space.open({ cwd: space.at('frontend') })
    const before = imageOf(space.at('backend'), { untouched: true })
    const { id } = await savepoint.snapshot()
    space.sh('rm -rf frontend/src')
    await savepoint.rollback(id)
    await expect(savepoint.coverage('../backend/server')).rejects.toMatchObject({ code: 'path.outside', exitCode: 2 })
    expect(differences(before, imageOf(space.at('backend'), { untouched: true }))).toEqual([])
  })
})

describe('a target that was moved', () => {
  it('is found again by its identity, with its history', async () => {
    const first = await space.open()
    const { id } = await first.snapshot()
    const moved = join(space.base, 'renamed')
    renameSync(space.dir, moved)
    writeFileSync(join(moved, 'backend/server'), 'two')
    const savepoint = await space.open({ cwd: join(moved, 'frontend'), create: false })
    expect(savepoint).toMatchObject({ target: moved, timeline: first.timeline, subdirectory: 'frontend' })
    expect(space.notices).toEqual([expect.stringContaining(`moved from ${space.dir} to ${moved}`)])
    const { files } = await savepoint.rollback(id, { all: true })
    expect(files).toEqual({ created: 0, deleted: 0, replaced: 1, metadata: 0 })
    expect(existsSync(space.dir)).toBe(false)
  })

  it('is found through a link that stands where it was, and not through one to another directory', async () => {
    const { timeline } = await space.open()
    const moved = join(space.base, 'moved')
    renameSync(space.dir, moved)
    symlinkSync('moved', space.dir)
    const below = { cwd: space.base, target: space.at('backend'), create: false }
    await expect(space.open(below)).rejects.toMatchObject({ code: 'timeline.none' })
    expect(space.notices).toEqual([])
    const savepoint = await space.open({ cwd: space.base, target: space.dir, create: false })
    expect([savepoint.timeline, savepoint.target]).toEqual([timeline, moved])
    await savepoint.snapshot()
    renameSync(moved, join(space.base, 'away'))
    mkdirSync(moved)
    await expect((await space.open({ cwd: space.base, target: space.dir })).status()).rejects.toMatchObject({
      code: 'target.replaced',
    })
  })

  it('leaves its old place free for another one', async () => {
    const first = await space.open()
    await first.snapshot()
    const moved = join(space.base, 'renamed')
    renameSync(space.dir, moved)
    expect((await space.open({ cwd: moved })).timeline).toBe(first.timeline)
    mkdirSync(space.dir)
    const second = await space.open()
    expect(second.timeline).not.toBe(first.timeline)
    expect(second.snapshots()).toEqual([])
    expect((await space.open({ cwd: moved })).snapshots()).toHaveLength(1)
  })
})

describe('R10: another directory in its place', () => {
  it('is an error, and nothing is written, until --force', async () => {
    const first = await space.open()
    const { id } = await first.snapshot()
    renameSync(space.dir, join(space.base, 'aside'))
    mkdirSync(space.dir)
    space.write('stranger', 'not ours')
    const before = imageOf(space.dir, { untouched: true })
    const savepoint = await space.open()
    const replaced = { code: 'target.replaced', hint: expect.stringContaining('--force') }
    await expect(savepoint.rollback(id)).rejects.toMatchObject(replaced)
    await expect(savepoint.snapshot()).rejects.toMatchObject(replaced)
    await expect(savepoint.rollback(id, { paths: ['backend'] })).rejects.toMatchObject(replaced)
    await expect(savepoint.status()).rejects.toMatchObject(replaced)
    await expect(savepoint.run({ command: ['touch', 'made'] })).rejects.toMatchObject({ exitCode: 125 })
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
    expect(savepoint.log().map(node => node.snapshot.id)).toEqual([id])
    const to = join(space.base, 'copy')
    await savepoint.rollback(id, { to })
    expect(existsSync(join(to, 'backend/server'))).toBe(true)

    // A look with --force changes nothing: the next one is refused as before.
    expect((await (await space.open({ force: true })).rollback(id, { dryRun: true })).files.deleted).toBe(1)
    await expect((await space.open()).status()).rejects.toMatchObject(replaced)

    const forced = await space.open({ force: true })
    const { safety } = await forced.rollback(id)
    expect([space.read('backend/server'), space.read('stranger')]).toEqual(['one', undefined])
    expect(forced.read(safety!.id, 'stranger').toString()).toBe('not ours')
    // From now on it is the target.
    await (await space.open()).snapshot()
  })
})

describe('a target that is gone', () => {
  it('is made again by a rollback, with its mode, and undo gives back the emptiness', async () => {
    space.sh('chmod 750 .')
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    const before = imageOf(space.dir)
    space.sh(`rm -rf '${space.dir}'`, '/')
    const again = await space.open({ cwd: space.base, target: `dir:${space.dir}`, create: false })
    await again.rollback(id)
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(space.notices).toContain('the target directory was gone and is made again')
    await again.undo()
    expect([...imageOf(space.dir).keys()]).toEqual([''])
    await again.redo()
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect((await space.open()).timeline).toBe(savepoint.timeline)
  })

  it('also when its parents are gone', async () => {
    const savepoint = await space.open({ cwd: space.at('frontend/src') })
    const { id } = await savepoint.snapshot()
    space.sh('rm -rf frontend')
    const again = await space.open({ cwd: space.base, target: space.at('frontend/src') })
    await again.rollback(id)
    expect(space.read('frontend/src/app')).toBe('one')
  })

  it('is a clear error for what needs it', async () => {
    const savepoint = await space.open()
    await savepoint.snapshot()
    space.sh(`rm -rf '${space.dir}'`, '/')
    await expect(savepoint.snapshot()).rejects.toMatchObject({ code: 'target.missing' })
    expect(existsSync(space.dir)).toBe(false)
  })

  it('can be planned for: the plan is what is done, and nothing is made', async () => {
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh(`rm -rf '${space.dir}'`, '/')
    const plan = await savepoint.rollback(id, { dryRun: true })
    expect([plan.dryRun, existsSync(space.dir)]).toEqual([true, false])
    expect(space.notices.join()).toContain('the target directory is gone, and would be made again')
    const done = await savepoint.rollback(id)
    expect([done.changes, done.files]).toEqual([plan.changes, plan.files])
    expect(plan.files.created).toBeGreaterThan(0)
  })

  it('with something else in its place: the hint says what was said, and that works', () => {
    const saved = runCli(space, ['snapshot', '-q']).stdout.trim()
    for (const obstacle of ['touch', 'ln -s nowhere']) {
      space.sh(`rm -rf '${space.dir}' '${space.dir}.aside'; ${obstacle} '${space.dir}'`, '/')
      for (const dry of [['--dry-run'], []]) {
        const { status, stderr } = runCli(space, ['rollback', saved, '-t', space.dir, ...dry], { cwd: space.base })
        expect([status, stderr]).toEqual([
          1,
          expect.stringMatching(/Cannot make .*work again: a \w+ has taken its place/),
        ])
        expect(stderr).toContain(`mv ${space.dir} ${space.dir}.aside; savepoint rollback ${saved} -t ${space.dir}\n`)
      }
      space.sh(`mv '${space.dir}' '${space.dir}.aside'`, '/')
      expect(runCli(space, ['rollback', saved, '-t', space.dir], { cwd: space.base }).status).toBe(0)
      expect(space.read('backend/server')).toBe('one')
    }
  })
})

describe('targets that are refused', () => {
  it('$HOME, however it is spelled, and / need --force', async () => {
    const refused = { code: 'target.refused', hint: expect.stringContaining('--force') }
    await expect(space.open({ cwd: space.userHome })).rejects.toMatchObject(refused)
    await expect(space.open({ cwd: '/' })).rejects.toMatchObject(refused)
    await expect(
      space.open({ cwd: space.userHome, env: { ...space.env, HOME: `${space.userHome}/` } }),
    ).rejects.toMatchObject(refused)
    const link = join(space.base, 'link to home')
    symlinkSync(space.userHome, link)
    await expect(space.open({ cwd: space.userHome, env: { ...space.env, HOME: link } })).rejects.toMatchObject(refused)
    await expect(space.open({ target: link })).rejects.toMatchObject(refused)
    const forced = await space.open({ cwd: space.userHome, force: true })
    expect(forced.target).toBe(space.userHome)
  })

  it('a directory that does not exist, a file, and kinds of target that this version does not have', async () => {
    await expect(space.open({ target: 'nowhere' })).rejects.toMatchObject({ code: 'target.missing' })
    await expect(space.open({ target: 'backend/server' })).rejects.toMatchObject({ code: 'target.missing' })
    for (const target of ['env:work', 'container:web']) {
      await expect(space.open({ target })).rejects.toMatchObject({ code: 'unsupported', exitCode: 13 })
    }
  })
})
