/** X3 where a filesystem keeps snapshots: they have more than was captured, and more directories than the one in question. */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { onTerminal } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
  space.write('.savepointignore', '*.db\n')
  space.write('local.db')
  space.write('key')
})

const take = (label: string): string => savepoint(space, ['snapshot', '-q', '-m', label]).stdout.trim()

onDisk('says what goes with it: in the question, in the result, and in the history', async () => {
  const ids = [take('one'), take('two')]
  rmSync(space.at('key'))
  const beside = (keeps: string) =>
    `2 snapshots that btrfs ${keeps}, with what ignore rules exclude; the store has the rest of them`
  const question = `from all snapshots\\? That also removes ${beside('keeps')}\\. This cannot be undone\\.`
  const asked = await onTerminal([...builtCommand, 'purge', 'key'], [{ wait: 'y/N\\] ', type: 'n\n' }], {
    cwd: space.dir,
    env: space.env,
  })
  expect(asked.output.replaceAll('\r\n', ' ')).toMatch(new RegExp(question))
  expect(scene.kept(space)).toHaveLength(2)
  expect(savepoint(space, ['purge', 'key', '--yes']).stdout).toMatch(
    new RegExp(`^Purged key: 1 version in 2 snapshots, .* freed\nRemoved, too: ${beside('kept')}\n$`),
  )
  expect(scene.kept(space)).toEqual([])
  const summary = 'purge key; left 2 snapshots to the store alone (was: btrfs)'
  expect(savepointJson(space, ['log', '--operations']).at(-1)).toMatchObject({ kind: 'purge', summary })
  expect(savepoint(space, ['events']).stdout).toContain(summary)
  // From now on nothing goes with one.
  space.write('key', 'another\n')
  expect(savepointJson(space, ['snapshot', '--backend', 'cas'])).toMatchObject({ backend: 'cas' })
  expect(savepointJson(space, ['purge', 'key', '--yes']).left_to_store).toEqual([])
  const third = take('three')
  expect(savepointJson(space, ['purge', 'key', '--yes']).left_to_store).toEqual([
    { snapshot: third, backend: 'btrfs', lost: [], lost_count: 0 },
  ])
  expect(ids).not.toContain(third)
})

onDisk('coverage says that what rules exclude may be in what is kept, until it was purged', async () => {
  const id = take('one')
  rmSync(space.at('local.db'))
  const kept =
    'No snapshot brings it back, but 1 snapshot that btrfs keeps may have it: everything in the directory is in there'
  expect(savepoint(space, ['coverage', 'local.db']).stdout).toContain(`${kept}\n`)
  expect(savepointJson(space, ['coverage', 'local.db'])).toMatchObject({ versions: 0, may_be_in: [id] })
  // What is captured, or named by no rule, would have been found.
  for (const path of ['key', 'no-such']) expect(savepointJson(space, ['coverage', path]).may_be_in).toEqual([])
  expect(savepoint(space, ['purge', 'local.db', '--yes'])).toMatchObject({ status: 0, stderr: '' })
  expect(savepoint(space, ['coverage', 'local.db']).stdout).toContain('No snapshot has a version of it\n')
})

onDisk('says what would keep it out of the next one, and that no rule does where btrfs keeps that', () => {
  take('one')
  const said = (backend = 'auto') =>
    savepoint(space, ['purge', 'local.db', '--yes'], { env: { ...space.env, SAVEPOINT_BACKEND: backend } }).stderr
  expect(said()).toBe(
    'savepoint: local.db is still on disk: unless it goes, the next snapshot has it again, even if .savepointignore names it: btrfs keeps everything\n',
  )
  take('two')
  expect(said('cas')).toContain('unless it goes, or .savepointignore names it, the next snapshot has it again\n')
})

onDisk('what cannot be looked into now is not called free of it: nothing is changed', async () => {
  take('one')
  const [kept] = scene.kept(space)
  const place = dirname(kept!)
  expect(savepoint(space, ['status']).status).toBe(0)
  renameSync(place, `${place}.away`)
  const away = savepoint(space, ['purge', 'local.db', '--yes'])
  expect(away).toMatchObject({ status: 1, stdout: '' })
  expect(away.stderr).toMatch(/^savepoint: Cannot tell whether what a filesystem keeps has local\.db: .* is not there/)
  renameSync(`${place}.away`, place)
  expect(scene.kept(space)).toEqual([kept])
  expect(savepoint(space, ['purge', 'no-such', '--yes']).status).toBe(12)
  expect(scene.kept(space)).toEqual([kept])
  expect(savepoint(space, ['purge', 'local.db', '--yes']).status).toBe(0)
  expect(scene.kept(space)).toEqual([])
})

/** A timeline of `pkg`, which the store keeps, inside that of the subvolume, which btrfs keeps. Answers where that is. */
function takeAround(): { around: string; kept: string } {
  space.write('pkg/key', 'a very secret word\n')
  space.write('pkg/local.db', 'rows\n')
  expect(savepoint(space, ['snapshot', '--backend', 'cas', '-t', space.at('pkg')]).status).toBe(0)
  const around = take('around')
  for (const name of ['pkg/key', 'pkg/local.db']) rmSync(space.at(name))
  return { around, kept: scene.kept(space)[0]! }
}

const inPkg = () => ({ cwd: space.at('pkg') })

onDisk('what a filesystem keeps of a directory around, and nobody has read, is named, and can be purged there', () => {
  const { around } = takeAround()
  const { status, stdout } = savepoint(space, ['purge', 'key', '--yes'], inPkg())
  expect({ status, stdout }).toEqual({
    status: 3,
    stdout: expect.stringMatching(/^Purged key: 1 version in 1 snapshot/),
  })
  expect(stdout).toContain(`purge them too if it is secret:\n  pkg/key (${around} of ${space.dir})\n`)
  expect(savepointJson(space, ['purge', 'pkg/key', '--yes'])).toMatchObject({ elsewhere: [], unread: [] })
  expect(scene.kept(space)).toEqual([])
})

onDisk(
  'what it keeps of any other directory, and nobody has read, is read first: the same may be there under any name',
  () => {
    const other = join(space.base, 'other')
    run('btrfs', 'subvolume', 'create', other)
    writeFileSync(join(other, 'stolen'), space.read('key')!)
    const unread = savepoint(space, ['snapshot', '-q'], { cwd: other }).stdout.trim()
    take('one')
    rmSync(space.at('key'))
    expect(savepointJson(space, ['purge', 'key', '--yes'])).toMatchObject({
      elsewhere: [{ snapshot: unread, path: 'stolen', target: other }],
      unread: [],
    })
  },
)

onDisk('what it keeps of a directory around and was never captured is named, too', () => {
  const { around } = takeAround()
  const purged = savepointJson(space, ['purge', 'local.db', '--yes'], inPkg())
  expect(purged).toMatchObject({ versions: 1, unread: [] })
  expect(purged.elsewhere).toEqual([{ snapshot: around, path: 'pkg/local.db', target: space.dir }])
})

onDisk('what cannot be read there now is named as not checked', () => {
  const { around, kept } = takeAround()
  const place = dirname(kept)
  renameSync(place, `${place}.away`)
  const away = savepoint(space, ['purge', 'key', '--yes'], inPkg())
  const why = `Not checked, perhaps the same is there: 1 snapshot that only a filesystem keeps, of ${space.dir}\n`
  expect(away).toMatchObject({ status: 3, stdout: expect.stringContaining(why) })
  expect(away.stderr).toMatch(/^savepoint: .*\/work: snap_\w+, which btrfs keeps, is not read yet: /)
  space.write('pkg/key', 'another\n')
  savepoint(space, ['snapshot', '--backend', 'cas'], inPkg())
  expect(savepointJson(space, ['purge', 'key', '--yes'], inPkg())).toMatchObject({
    elsewhere: [],
    unread: [{ snapshot: around, target: space.dir }],
  })
  renameSync(`${place}.away`, place)
})
