/** What was not captured and is gone, where btrfs keeps a snapshot: that has it, which is said, with the command that copies it. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { beforeEach, expect } from 'vitest'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})
beforeEach(() => {
  if (!scene.possible) return
  space.write('.gitignore', '*.db\nmodules/\n')
  space.sh('git init -q -b main .; git add .; git commit -qm one')
  space.write('data.db', 'precious\n')
  space.write('modules/m/index.js')
})

const take = (): string => savepoint(space, ['snapshot', '-q']).stdout.trim()
const kept = (id: string, path: string) => `${scene.kept(space).find(each => each.endsWith(id))}/${path}`
const has = (id: string, path: string) =>
  `${id}, which btrfs keeps, has ${path} as it was then: cp -a '${kept(id, path)}' ${path}\n`

onDisk('run, undo, rollback, history and coverage name it, in the newest that has it', () => {
  const older = take()
  space.write('data.db', 'changed\n')
  const id = take()
  rmSync(space.at('modules'), { recursive: true })
  const last = take()
  const clean = savepoint(space, ['run', '--', 'git', 'clean', '-fdxq']).stderr
  const lost = `NOT protected and gone: data.db (ignored; only btrfs has it)\n${has(last, 'data.db')}`
  expect(clean).toContain(lost)
  expect(savepoint(space, ['undo']).stdout).toContain(lost)
  const back = savepoint(space, ['rollback', older]).stdout
  expect(back).toContain('gone: data.db, modules (ignored; only btrfs has them)\n')
  expect(back).toContain(has(last, 'data.db') + has(id, 'modules'))
  expect(savepoint(space, ['history', 'data.db']).stdout).toContain(`does not exist now\n${has(last, 'data.db')}`)
  // No snapshot names what lies in a directory that is left out whole.
  expect(savepoint(space, ['history', 'modules/m']).stdout).toContain(has(id, 'modules/m'))
  expect(savepoint(space, ['coverage', 'data.db']).stdout).toContain(has(last, 'data.db'))
  const copy = { snapshot: last, backend: 'btrfs', where: kept(last, '').slice(0, -1), file: kept(last, 'data.db') }
  expect(savepointJson(space, ['history', 'data.db']).kept).toEqual(copy)
  const { gone } = savepointJson(space, ['rollback', last])
  expect(gone).toEqual({ count: 1, paths: [{ path: 'data.db', reason: 'excluded', snapshot: null, kept: copy }] })
  // It does what it says.
  space.sh(/cp -a .*/.exec(clean)![0])
  expect(space.read('data.db')).toBe('changed\n')
  expect(savepoint(space, ['history', 'data.db']).stdout).toContain(`as it was then: ${kept(last, 'data.db')}\n`)
})

onDisk('run, and who takes it back, name what lies in a directory that is left out, as it was before', () => {
  const id = take()
  const script = 'echo overwritten > modules/m/index.js; rm data.db; echo > made'
  const { stderr } = savepoint(space, ['run', '--', 'sh', '-c', script])
  const changed = `NOT protected and changed: modules (ignored; undo cannot take that back)\n${id}, which btrfs keeps, has modules as it was then: ${kept(id, 'modules')}\n`
  expect(stderr).toContain(changed)
  // As it is now is in later ones.
  take()
  const [{ id: run }] = savepointJson(space, ['runs'])
  expect(savepoint(space, ['rollback', run, '--dry-run']).stdout).toContain(changed)
  const { unprotected } = savepointJson(space, ['rollback', run])
  expect(unprotected).toMatchObject({
    count: 1,
    paths: [{ path: 'modules', to: null, kept: { snapshot: id, backend: 'btrfs', file: kept(id, 'modules') } }],
  })
})

onDisk('run and undo name it where another directory with a file of its name took the place', () => {
  space.write('data/load.js')
  space.write('data/app.db', 'precious\n')
  const id = take()
  const swap = 'cp -r data data.new; echo junk > data.new/app.db; mv data data.old; mv data.new data; rm -rf data.old'
  const { stderr } = savepoint(space, ['run', '--', 'sh', '-c', swap])
  const named = `NOT protected and changed: data/app.db (ignored; undo cannot take that back)\n${id}, which btrfs keeps, has data/app.db as it was then: ${kept(id, 'data/app.db')}\n`
  expect(stderr).toContain(named)
  expect(savepoint(space, ['undo']).stdout).toContain(named)
})

onDisk('what it says works for names that cannot be shown as they are', () => {
  const names = ['a\\b.db', 'bell\x07, line\n.db', "it's é.db", '-dash.db']
  rmSync(space.at('data.db'))
  for (const name of names) space.write(name, name)
  space.sh('printf stray > "$(printf \'stray\\377.db\')"')
  take()
  const clean = savepoint(space, ['run', '--', 'sh', '-c', 'rm ./*.db']).stderr
  const lines = clean.match(/cp -a .*/g)!
  expect(lines).toHaveLength(names.length + 1)
  for (const line of lines) execFileSync('bash', ['-c', line], { cwd: space.dir })
  for (const name of names) expect(space.read(name)).toBe(name)
  space.sh('grep -q stray "$(printf \'stray\\377.db\')"')
})

onDisk('coverage knows it without the rule, and of what was too large', () => {
  space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KiB\n')
  space.write('large', Buffer.alloc(200 * 1024))
  const id = take()
  space.sh('rm data.db large .gitignore')
  for (const path of ['data.db', 'large']) {
    expect(savepoint(space, ['coverage', path]).stdout).toContain(has(id, path))
    expect(savepointJson(space, ['coverage', path])).toMatchObject({ may_be_in: [id], kept: { snapshot: id } })
  }
  expect(savepointJson(space, ['coverage', 'no-such'])).toMatchObject({ may_be_in: [], kept: null })
})

onDisk('rollback and revert name it where something else is in its place, and not where nothing has changed', () => {
  space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KiB\n')
  for (const path of ['large', 'same']) space.write(path, Buffer.alloc(200 * 1024))
  const id = take()
  space.sh('echo small > large')
  const copy = `${id}, which btrfs keeps, has large as it was then: ${kept(id, 'large')}\n`
  for (const more of [['--dry-run'], []])
    expect(savepoint(space, ['rollback', id, ...more]).stdout).toContain(
      `not captured: large (too-large), same (too-large)\n${copy}`,
    )
  expect(savepoint(space, ['rollback', id]).stdout).not.toContain('has same as it was')
  const [large, same] = savepointJson(space, ['rollback', id]).uncaptured
  expect([large, same]).toMatchObject([
    { path: 'large', kept: { snapshot: id, file: kept(id, 'large') } },
    { kept: null },
  ])
  const { stderr } = savepoint(space, ['revert', 'large', '--from', id])
  expect(stderr).toContain(
    `does not have it\n  hint: ${id}, which btrfs keeps, has it as it was then: ${kept(id, 'large')}. `,
  )
})

onDisk(
  'not what was a nested subvolume, of which the snapshot has an empty directory, nor what somebody removed',
  () => {
    rmSync(space.at('modules'), { recursive: true })
    run('btrfs', 'subvolume', 'create', space.at('modules'))
    space.write('modules/x')
    const id = take()
    const clean = savepoint(space, ['run', '--', 'sh', '-c', 'rm -r modules data.db']).stderr
    expect(clean).toContain('gone: data.db, modules (')
    expect(clean).toContain('; only btrfs has some of them)\n')
    expect(clean.match(/cp -a .*/g)).toEqual([expect.stringMatching(/data\.db$/)])
    run('btrfs', 'subvolume', 'delete', kept(id, ''))
    expect(savepoint(space, ['undo']).stdout).toContain('; they cannot be brought back)\n')
    expect(savepoint(space, ['history', 'data.db']).stdout).toContain('No snapshot can bring it back\n')
  },
)
