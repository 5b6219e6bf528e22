/** What no snapshot has and a run took away: it cannot be brought back, so it must be said. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
  space.write('.gitignore', '*.db\nnode_modules/\n*.o\n')
  space.sh('git init -q -b main .; git add .; git commit -qm one')
  space.write('data.db', 'precious')
  space.write('node_modules/m/index.js', 'module')
})
afterEach(() => space.remove())

const lost = 'NOT protected and gone: data.db, node_modules (ignored; they cannot be brought back)\n'

it('`git clean -fdx` is not "nothing changed": run, undo and rollback of the run name what is gone', () => {
  const run = runCli(space, ['run', '--', 'git', 'clean', '-fdxq'])
  expect(run.stderr).toContain('nothing that is protected changed')
  expect(run.stderr).toContain(lost)
  const id = /run (run_\w+)/.exec(run.stderr)![1]!
  expect(runCli(space, ['rollback', id, '--dry-run']).stdout).toContain(lost)
  expect(runCli(space, ['undo']).stdout).toContain(lost)
})

it('a rollback to a snapshot names what that had seen and is gone: not everything is as in it', () => {
  const { stdout } = runCli(space, ['snapshot', '-q'])
  space.sh('rm -r data.db node_modules')
  const back = () => runCli(space, ['rollback', stdout.trim()]).stdout
  expect(back()).toBe(`Nothing to change: everything else is as in ${stdout.trim()}\n${lost}`)
  space.write('a', 'a2')
  expect(back()).toContain(`1 replaced\n${lost}`)
  space.write('data.db', 'made again')
  expect(back()).toContain('gone: node_modules (')
})

it('in JSON, with the reason of each', () => {
  space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KiB\n')
  space.write('large', Buffer.alloc(200 * 1024))
  const gone = {
    count: 3,
    paths: [
      { path: 'data.db', reason: 'excluded', snapshot: null, kept: null },
      { path: 'large', reason: 'too-large', snapshot: null, kept: null },
      { path: 'node_modules', reason: 'excluded', snapshot: null, kept: null },
    ],
  }
  const run = runCli(space, ['run', '--json', '--', 'rm', '-r', 'data.db', 'node_modules', 'large', 'a'])
  const result = JSON.parse(run.stderr.trim().split('\n').at(-1)!)
  expect([result.counts.deleted, result.gone]).toEqual([1, gone])
  expect(JSON.parse(runCli(space, ['undo', '--json']).stdout).restore.gone).toEqual(gone)
  expect(space.read('a')).toBe('a1')
})

it('also within a directory that went as a whole; five names, then a number', async () => {
  for (const name of 'bcdefgh') space.write(`src/${name}.o`)
  space.write('src/main.c')
  const { stderr } = runCli(space, ['run', '--', 'rm', '-r', 'src'])
  expect(stderr).toContain('gone: src/b.o, src/c.o, src/d.o, src/e.o, src/f.o and 2 more (ignored;')
})

it('what is still there, or there again, is not called gone; nor what the target never had', async () => {
  const savepoint = await space.open()
  const none = { count: 0, paths: [] }
  const made = await savepoint.run({ command: ['sh', '-c', 'echo new > data.db; echo x > other.db; echo a2 > a'] })
  expect(made.gone).toEqual(none)
  expect((await savepoint.undo()).restore!.gone).toEqual(none)
  const taken = await savepoint.run({ command: ['rm', '-r', 'data.db', 'node_modules'] })
  expect(taken.gone.count).toBe(2)
  space.write('node_modules/m/index.js', 'installed again')
  const { restore } = await savepoint.undo()
  expect(restore!.gone).toEqual({ count: 1, paths: [{ path: 'data.db', reason: 'excluded', snapshot: undefined }] })
})

it('of a run that deleted the whole target', async () => {
  const savepoint = await space.open()
  const { gone } = await savepoint.run({ command: ['sh', '-c', `cd /; rm -rf '${space.dir}'`] })
  expect(gone.paths.map(({ path }) => path)).toEqual(['data.db', 'node_modules'])
  expect((await savepoint.undo()).restore!.gone.count).toBe(2)
})

it('where an older snapshot has it, that is named with the command that brings it back', () => {
  space.write('.gitignore', '*.o\n')
  const older = runCli(space, ['snapshot', '-q']).stdout.trim()
  space.write('data.db', 'changed')
  space.write('.gitignore', '*.db\nnode_modules/\n*.o\n')
  space.write('never.o')
  runCli(space, ['snapshot'])
  const run = runCli(space, ['run', '--', 'git', 'clean', '-fdxq'])
  const command = `revert data.db node_modules --from ${older}`
  expect(run.stderr).toContain('gone: data.db, never.o, node_modules (ignored;')
  expect(run.stderr).toContain(`\n${older} has older versions: savepoint ${command}\n`)
  expect(runCli(space, ['undo']).stdout).toContain(command)
  runCli(space, command.split(' '))
  expect([space.read('data.db'), space.read('node_modules/m/index.js')]).toEqual(['precious', 'module'])
})
