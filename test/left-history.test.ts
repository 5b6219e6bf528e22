/** Paths that were captured once, are something else now and are not captured any more: not "nothing changed". */
import { mkdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let first: string
beforeEach(() => {
  space = new Workspace()
  space.write('.gitignore', '.env\n')
  space.write('.env', 'SECRET=1\n')
  space.write('a', 'a1')
  space.sh('git init -q .')
  first = runCli(space, ['snapshot', '-q']).stdout.trim()
})
afterEach(() => space.remove())

const becomeDirectory = () => space.sh('rm .env; mkdir .env; echo x > .env/x')

it('a kept file that became a directory is named by status, changes, diff and the next snapshot', () => {
  becomeDirectory()
  expect(runCli(space, ['status']).stdout).toMatch(/Since then: 1 modified.*\n {2}T \.env/)
  expect(runCli(space, ['changes']).stdout).toContain('T .env')
  expect(runCli(space, ['diff']).stdout).toContain('-SECRET=1')
  expect(JSON.parse(runCli(space, ['changes', '--json']).stdout).changes).toMatchObject([
    { kind: 'type-changed', path: '.env', before: { type: 'file' }, after: { type: 'dir' } },
  ])
  const { stderr } = runCli(space, ['snapshot'])
  expect(stderr).toContain(`.env changed and is not captured any more; ${first} has it as before`)
})

it('the snapshot itself counts and shows it, and so do an archive of it and a comparison with it', () => {
  becomeDirectory()
  const taken = runCli(space, ['snapshot', '--label', 'second'])
  expect(taken.stdout).toContain('1 modified')
  expect(taken.stdout).not.toContain('empty directory')
  expect(runCli(space, ['show', 'second']).stdout).toMatch(/1 modified\n(.*\n)* {2}T \.env\//)
  for (const [from, to] of [
    [first, 'second'],
    ['second', first],
  ] as const) {
    const { changes } = JSON.parse(runCli(space, ['diff', from, to, '--json']).stdout)
    expect(changes).toMatchObject([{ kind: 'type-changed', path: '.env' }])
  }
  expect(runCli(space, ['diff', first, 'second']).stdout).toContain('-SECRET=1')
  expect(runCli(space, ['status']).stdout).toContain('Nothing changed since')

  expect(runCli(space, ['export', 'second', '../second.tar']).status).toBe(0)
  expect(runCli(space, ['import', '../second.tar', '--label', 'third']).status).toBe(0)
  expect(JSON.parse(runCli(space, ['diff', 'second', 'third', '--json']).stdout).changes).toEqual([])
  expect(runCli(space, ['diff', first, 'third', '--name-only']).stdout).toBe('.env\n')
})

it('so is one that grew beyond what is kept; one that a new rule leaves out is as it was', () => {
  space.write('.gitignore', '.env\na\n')
  expect(runCli(space, ['status']).stdout).toMatch(/Since then: 1 modified\n {2}M \.gitignore/)
  space.write('.env', Buffer.alloc(2 ** 20 + 1, 'x'))
  expect(runCli(space, ['status']).stdout).toMatch(/Since then: 2 modified\n {2}M \.env\n {2}M \.gitignore/)
})

describe('a file that grows beyond snapshots.max_file_bytes', () => {
  beforeEach(() => {
    space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 2 KB\n')
    first = runCli(space, ['snapshot', '-q']).stdout.trim()
  })
  const changesOf = (...refs: string[]) =>
    JSON.parse(runCli(space, ['diff', ...refs, '--json']).stdout).changes.map(
      (change: { kind: string; path: string }) => [change.kind, change.path],
    )

  it('is a change of the snapshot that does not have it any more, and of one that has it again', () => {
    space.write('a', Buffer.alloc(3000, 'x'))
    const taken = runCli(space, ['snapshot', '--label', 'large'])
    expect([taken.status, taken.stdout]).toEqual([3, expect.stringContaining('1 modified')])
    expect(runCli(space, ['show', 'large']).stdout).toContain('M a (2 B -> more than 2 KB)')
    expect(runCli(space, ['diff', first, 'large']).stdout).toContain('2 -> more than 2000 bytes')
    expect([changesOf(first, 'large'), changesOf('large', first)]).toEqual([[['modified', 'a']], [['modified', 'a']]])
    expect(runCli(space, ['history', 'a']).stdout).toMatch(/too-large +(?:just now|\d+ seconds? ago)/)
    space.write('a', Buffer.alloc(4000, 'x'))
    runCli(space, ['snapshot', '--label', 'larger'])
    expect(changesOf('large', 'larger')).toEqual([])
    runCli(space, ['export', 'large', '../large.tar'])
    runCli(space, ['import', '../large.tar', '--label', 'imported'])
    expect(changesOf(first, 'imported')).toEqual([['modified', 'a']])
  })

  it('is none when only the limit was lowered', () => {
    space.write('b', Buffer.alloc(1000, 'x'))
    runCli(space, ['snapshot', '--label', 'before'])
    space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 500 B\n')
    runCli(space, ['snapshot', '--label', 'after'])
    expect(changesOf('before', 'after')).toEqual([['modified', 'savepoint.yaml']])
  })

  it('made by a run, it is named by the run, its undo and a rollback', () => {
    const run = runCli(space, ['run', '--', 'sh', '-c', 'head -c 3000 /dev/zero > new'])
    expect(run.stderr).toContain('nothing that is protected changed\n')
    expect(run.stderr).toContain('NOT protected and made: new (too large; undo leaves it)\n')
    // What else is too large here was so before.
    const stays = /^Stay, because they were not captured: new \(too-large\)/m
    for (const verb of [['undo', '--dry-run'], ['undo'], ['rollback', first, '--dry-run'], ['rollback', first]])
      expect(runCli(space, verb).stdout).toMatch(stays)
    expect(space.read('new')!.length).toBe(3000)
  })
})

it('a rollback that leaves it alone names the way to have it back, and that works', () => {
  becomeDirectory()
  const { stdout, status } = runCli(space, ['rollback', first])
  const hint = `mv .env .env.aside; savepoint revert .env --from ${first}`
  expect([status, stdout]).toEqual([3, expect.stringContaining(`To put it back: ${hint}\n`)])
  space.sh('mv .env .env.aside')
  expect(runCli(space, ['revert', '.env', '--from', first]).status).toBe(0)
  expect(space.read('.env')).toBe('SECRET=1\n')
})

it('an undo that left everything alone can be said again, once the way is free', () => {
  const run = runCli(space, ['run', '--', 'sh', '-c', 'rm .env; mkdir .env; echo x > .env/x'])
  expect(run.stderr).toContain('To undo: savepoint undo')
  const left = runCli(space, ['undo'])
  expect(left.status).toBe(3)
  expect(left.stdout).toMatch(
    /^Not undone: run_.*\nNothing was changed\nLeft alone \(1\):\n.*\nTo put it back: mv .*\n$/,
  )
  space.sh('rm -r .env')
  mkdirSync(space.at('.env'))
  expect(runCli(space, ['undo']).stdout).toMatch(/^Undone: run_/)
  expect(space.read('.env')).toBe('SECRET=1\n')
})

it('an undo that does not get past a run names the way to the one before', () => {
  runCli(space, ['run', '--', 'sh', '-c', 'echo older > b'])
  runCli(space, ['run', '--', 'sh', '-c', 'echo a2 > a'])
  space.write('a', 'by hand')
  for (let time = 0; time < 2; time++) {
    const { stdout, stderr } = runCli(space, ['undo'])
    expect(stdout).toContain('Not undone')
    const [, way] = /`savepoint (rollback run_\w+)` takes back the run before it/.exec(stderr)!
    if (time === 1) expect(runCli(space, way!.split(' ')).status).toBe(0)
  }
  expect([space.read('a'), space.read('b')]).toEqual(['by hand', undefined])
})

it('what somebody else edited since has its way back named, too', () => {
  runCli(space, ['run', '--', 'sh', '-c', 'echo a2 > a'])
  space.write('a', 'by hand')
  const { stdout } = runCli(space, ['undo'])
  const [, way] = /To take back their changes, too: savepoint (rollback snap_\w+ -- a)\n/.exec(stdout)!
  expect(runCli(space, ['undo']).stdout).toContain('Not undone')
  // From elsewhere it is to be typed there.
  const elsewhere = runCli(space, ['undo', '-t', space.dir], { cwd: space.base }).stdout
  expect(elsewhere).toContain(`too: savepoint -t ${space.dir} ${way}`.replace(/a$/, `${space.at('a')}\n`))
  runCli(space, way!.split(' '))
  expect(space.read('a')).toBe('a1')
})
