/** run, and every way back: what it prints, the shape of its JSON, how it is undone, and its exit code. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint, steady } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import { keys, listedRunKeys, operationKeys, restoreKeys, runKeys } from './support/json-keys.ts'
import { differences, imageOf } from './support/tree-image.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { say, json, refused } = dialogue(() => space)

describe('run', () => {
  it('keeps stdout for the command, says on stderr what changed and how to undo it', () => {
    const result = savepoint(space, ['run', '--', 'sh', '-c', 'echo out; rm src/b.txt; echo n > new; exit 7'])
    expect({ ...result, stderr: steady(result.stderr, space) }).toEqual({
      status: 7,
      signal: null,
      stdout: 'out\n',
      stderr:
        'savepoint: protecting BASE/work (snap_ID, 2 files)\nsavepoint: run run_ID: exit 7, TOOK; 2 commands (1 failed, see savepoint trace --failed); 1 added, 1 deleted\n' +
        '  A new\n  D src/b.txt\nTo undo: savepoint undo\n',
    })
    const quiet = savepoint(space, ['run', '-q', 'sh', '-c', 'echo err >&2'])
    expect(quiet).toMatchObject({ status: 0, stdout: '', stderr: 'err\n' })
    expect(savepoint(space, ['run', '--', 'true']).stderr).toMatch(/: exit 0, .*; nothing changed\n$/)
  })

  it('--json: one line on stderr at the end', () => {
    const { stdout, stderr } = savepoint(space, ['run', '--json', '--', 'sh', '-c', 'echo out; echo 1 > a.txt'])
    const lines = stderr
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(stdout).toBe('out\n')
    expect(lines[0].notice).toMatch(/^protecting /)
    expect(keys(lines[1])).toEqual([
      'run',
      'trace',
      'exit_code',
      'signal',
      'counts',
      'changes',
      'moved_to',
      'gone',
      'unprotected',
      'hidden',
      'uncaptured',
      'kept',
      'stopped',
      'taken_back',
    ])
    expect(keys(lines[1].run)).toEqual(runKeys)
    expect(lines[1].counts).toEqual({ added: 0, modified: 1, deleted: 0 })
  })

  it('T3 126, 127, 128+n and stdin; --json after -- belongs to the command', () => {
    space.write('plain', 'no program')
    refused(
      ['run', '-q', '--', './plain'],
      126,
      /^savepoint: Cannot run \.\/plain: it is not executable\n {2}hint: chmod \+x \.\/plain\n$/,
    )
    refused(['run', '-q', '--', '/'], 126, /^savepoint: Cannot run \/: it is a directory\n/)
    refused(['run', '-q', '--', 'no-such-program'], 127, /^savepoint: Cannot run no-such-program: command not found\n/)
    expect(savepoint(space, ['run', '-q', '--', 'sh', '-c', 'kill -9 $$']).status).toBe(137)
    expect(savepoint(space, ['run', '-q', '--', 'sh', '-c', 'kill -USR1 $$']).status).toBe(138)
    expect(savepoint(space, ['run', '-q', '--', 'cat'], { input: 'hi', stdio: 'pipe' })).toMatchObject({
      status: 0,
      stdout: 'hi',
    })
    expect(savepoint(space, ['run', '-q', '--', 'echo', '--json', '-q', '--']).stdout).toBe('--json -q --\n')
  })

  it('125 when the state before cannot be captured, and the command is not started; --unprotected starts it', () => {
    mkdirSync(space.home)
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 4000000 GiB\n')
    refused(
      ['run', '--', 'touch', 'made'],
      125,
      /^savepoint: Cannot start the command: the snapshot before it failed \(.*\)\n {2}hint: .*--unprotected starts it anyway\n$/,
    )
    expect(existsSync(space.at('made'))).toBe(false)
    const unprotected = savepoint(space, ['run', '--unprotected', '--', 'touch', 'made'])
    expect(unprotected).toMatchObject({ status: 0, stderr: expect.stringContaining('the run is NOT protected') })
    expect(existsSync(space.at('made'))).toBe(true)
  })

  it('runs and operations list it; rollback RUN takes back only that run', () => {
    say(['snapshot'])
    savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo first > a.txt'])
    savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo second > src/b.txt; exit 3'])
    expect(say(['runs'])).toBe(
      "ID  EXIT  STATE  STARTED  TOOK  COMMAND\nrun_ID  3  AGE  TOOK  sh -c 'echo second > src/b.txt; exit 3'\n" +
        "run_ID  0  AGE  TOOK  sh -c 'echo first > a.txt'\n",
    )
    const runs = json('runs')
    expect(runs.map(keys)).toEqual([listedRunKeys, listedRunKeys])
    expect(say(['operations', '-n', '1'])).toBe(
      "ID  KIND  WHEN  STATE  WHAT\nop_ID  run  AGE  can be undone  run_ID: sh -c 'echo second > src/b.txt; exit 3'\n",
    )
    expect(json('operations').map(keys)).toEqual([operationKeys, operationKeys])
    expect(say(['log', '--operations'])).toBe(say(['operations']))
    expect(say(['rollback', runs[1].id])).toMatch(/^Took back run_ID, to .*: 1 replaced\nTo undo: savepoint undo\n$/)
    expect([space.read('a.txt'), space.read('src/b.txt')]).toEqual(['one\n', 'second\n'])
  })
})

describe('going back', () => {
  beforeEach(() => {
    say(['snapshot', '-m', 'first'])
    space.write('a.txt', 'two\n')
    space.write('new/c.txt')
    rmSync(space.at('src/b.txt'))
  })

  it('rollback --dry-run shows the plan and changes nothing; rollback does it; undo and redo go both ways', () => {
    const changed = imageOf(space.dir, { untouched: true })
    expect(say(['rollback', 'first', '--dry-run'])).toBe(
      'Would roll back to snap_ID (first): 1 created, 1 deleted, 1 replaced\n  ~ a.txt\n  - new\n  + src/b.txt\n' +
        'Nothing was changed (dry run)\n',
    )
    expect(differences(changed, imageOf(space.dir, { untouched: true }))).toEqual([])
    const plan = json('rollback', 'first', '--dry-run')
    expect(keys(plan)).toEqual(restoreKeys)
    expect(plan).toMatchObject({
      dry_run: true,
      files: { created: 1, deleted: 1, replaced: 1, metadata: 0 },
      operation: null,
    })
    const before = imageOf(space.dir)
    expect(say(['rollback', 'first'])).toBe(
      'Rolled back to snap_ID (first): 1 created, 1 deleted, 1 replaced\nTo undo: savepoint undo\n',
    )
    expect([space.read('a.txt'), space.read('src/b.txt'), existsSync(space.at('new'))]).toEqual(['one\n', 'b\n', false])
    expect(say(['undo'])).toBe(
      'Undone: rollback to snap_ID (first)\nFiles: 1 created, 1 deleted, 1 replaced\nTo redo: savepoint redo\n',
    )
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(say(['redo'])).toBe(
      'Redone: rollback to snap_ID (first)\nFiles: 1 created, 1 deleted, 1 replaced\nTo undo: savepoint undo\n',
    )
    const undone = json('undo')
    expect(keys(undone)).toEqual(['operation', 'dry_run', 'effect', 'restore'])
    expect(keys(undone.operation)).toEqual(operationKeys)
    expect(keys(undone.restore)).toEqual(restoreKeys)
  })

  it('undo --dry-run and redo --dry-run show the plan and change nothing', () => {
    say(['rollback', 'first'])
    const [before, operations] = [imageOf(space.dir, { untouched: true }), json('operations')]
    const plan = '  ~ a.txt\n  + new\n  - src/b.txt\nNothing was changed (dry run)\n'
    expect(say(['undo', '--dry-run'])).toBe(
      `Would undo: rollback to snap_ID (first)\nFiles: 1 created, 1 deleted, 1 replaced\n${plan}`,
    )
    const planned = json('undo', '--dry-run')
    expect(planned).toMatchObject({
      operation: { kind: 'rollback', state: 'done' },
      dry_run: true,
      restore: { dry_run: true, files: { created: 1, deleted: 1, replaced: 1, metadata: 0 }, operation: null },
    })
    expect(keys(planned.restore)).toEqual(restoreKeys)
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
    expect(json('operations')).toEqual(operations)
    const { restore } = json('undo')
    expect([restore.changes, restore.files]).toEqual([planned.restore.changes, planned.restore.files])
    expect(say(['redo', '--dry-run'])).toMatch(/^Would redo: rollback to snap_ID \(first\)\nFiles: .*\n {2}~ a\.txt\n/)
    expect([space.read('a.txt'), json('redo', '--dry-run').operation.state]).toEqual(['two\n', 'undone'])
  })

  it.each([
    ['tag', ['tag', 'good'], /^Would undo: .*good.* \(tag good is gone\)\n/],
    ['delete', ['delete', 'second'], /^Would undo: .* \(1 snapshot back\)\n/],
    ['compact', ['compact', 'first', 'second'], /^Would undo: .* \(2 snapshots apart again\)\n/],
  ])('undo --dry-run of %s says what would be undone, and does not', (_, command, expected) => {
    say(['snapshot', '-m', 'second'])
    say(['snapshot', '-m', 'third'])
    say(command)
    const state = () => [json('log'), json('operations')]
    const before = state()
    expect(say(['undo', '--dry-run'])).toMatch(new RegExp(`${expected.source}Nothing was changed \\(dry run\\)\\n$`))
    expect(json('undo', '--dry-run')).toMatchObject({ dry_run: true, restore: null, operation: { state: 'done' } })
    expect(state()).toEqual(before)
    say(['undo'])
    expect(say(['redo', '--dry-run'])).toMatch(/^Would redo: .*\nNothing was changed \(dry run\)\n$/)
    expect(json('operations').map(({ state: each }: { state: string }) => each)).toContain('undone')
  })

  it('rollback of paths, of a subdirectory, with --to, and under its other names', () => {
    expect(say(['rollback', 'first', '--', 'src'])).toBe(
      'Rolled back to snap_ID (first): 1 created\nTo undo: savepoint undo\n',
    )
    expect([space.read('a.txt'), space.read('src/b.txt')]).toEqual(['two\n', 'b\n'])
    space.write('src/b.txt', 'edited\n')
    const inside = savepoint(space, ['checkout', 'first'], { cwd: space.at('src') })
    expect(inside.stderr).toMatch(
      /^savepoint: using the timeline of .*work \(above\)\nsavepoint: only src\/ is rolled back; --all takes the whole of .*work\n$/,
    )
    expect([space.read('a.txt'), space.read('src/b.txt')]).toEqual(['two\n', 'b\n'])
    const to = join(space.base, 'then')
    expect(say(['restore', 'first', '--to', to])).toBe('Wrote snap_ID (first) into BASE/then: 2 paths\n')
    expect(readFileSync(join(to, 'a.txt'), 'utf8')).toBe('one\n')
    refused(['rollback', 'first', '--to', to], 2, /Cannot restore to .*then: it is not empty\n {2}hint: /)
    const all = savepoint(space, ['rollback', 'first', '--all'], { cwd: space.at('src') })
    expect(all.status).toBe(0)
    expect(space.read('a.txt')).toBe('one\n')
    expect(say(['rollback', 'first'])).toBe('Nothing to change: everything is as in snap_ID (first)\n')
  })

  it('revert brings one file back, removes one that is newer than the snapshot, and says the next step', () => {
    expect(say(['revert', 'src/b.txt'])).toBe(
      'Reverted src/b.txt to snap_ID (first): 1 created\nTo undo: savepoint undo\n',
    )
    expect(say(['revert', 'new/c.txt', '--from', 'first', '--dry-run'])).toMatch(
      /^Would revert new\/c\.txt to snap_ID \(first\): 1 deleted\n {2}- new\S*\nNothing was changed \(dry run\)\n$/,
    )
    expect(say(['revert', 'a.txt', 'new', '--from', 'first'])).toMatch(
      /^Reverted a\.txt to .*: 1 replaced\nReverted new to .*: 1 deleted\nTo undo all, 2 times: savepoint undo\n$/,
    )
    expect([space.read('a.txt'), existsSync(space.at('new'))]).toEqual(['one\n', false])
    expect(json('revert', 'a.txt').map(keys)).toEqual([restoreKeys])
  })

  it('3: of several paths, what could be reverted is, and is reported with what could not', () => {
    const mixed = savepoint(space, ['revert', 'a.txt', 'nothing', 'src/b.txt'])
    expect({ ...mixed, stdout: steady(mixed.stdout, space) }).toMatchObject({
      status: 3,
      stdout:
        'Reverted a.txt to snap_ID (first): 1 replaced\nReverted src/b.txt to snap_ID (first): 1 created\n' +
        'To undo all, 2 times: savepoint undo\n',
      stderr: expect.stringMatching(
        /^savepoint: Cannot restore nothing: no snapshot has it\n {2}hint: .*history nothing/,
      ),
    })
    expect([space.read('a.txt'), space.read('src/b.txt')]).toEqual(['one\n', 'b\n'])
    space.write('a.txt', 'two\n')
    const asJson = savepoint(space, ['revert', 'nothing', 'a.txt', '--json'])
    const [failed, done] = JSON.parse(asJson.stdout)
    expect([asJson.status, keys(done), done.files.replaced]).toEqual([3, restoreKeys, 1])
    expect(failed).toEqual({
      path: 'nothing',
      error: { code: 'path.unknown', message: expect.stringContaining('nothing'), hint: expect.any(String) },
    })
    expect(JSON.parse(asJson.stderr).error).toMatchObject({ code: 'incomplete', data: { failed: ['nothing'] } })
    refused(['revert', 'nothing', 'neither'], 12, /^savepoint: Cannot restore nothing: .*\nCannot restore neither: /)
  })

  it('3: a revert that stops half-way says what is done, and does not try the rest', () => {
    const env = { ...space.env, SAVEPOINT_FAILPOINT: 'restore:staged#2@EIO' }
    const stopped = savepoint(space, ['revert', 'a.txt', 'src/b.txt', 'new', '--from', 'first'], { env })
    expect(stopped).toMatchObject({ status: 3, stdout: expect.stringMatching(/^Reverted a\.txt .*\nTo undo: /) })
    expect([stopped.stderr.match(/^savepoint: /gm)?.length, stopped.stderr]).toEqual([
      1,
      expect.stringContaining('EIO'),
    ])
    expect([space.read('a.txt'), existsSync(space.at('new'))]).toEqual(['one\n', true])
  })

  it('3: what somebody else edited since is left alone, listed, and kept', () => {
    savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo agent > a.txt; echo agent > made'])
    space.write('a.txt', 'by hand\n')
    expect(say(['undo'], 3)).toMatch(
      /^Undone: run_ID: .*\nFiles: 1 deleted\nLeft alone \(1\):\n {2}a\.txt: edited by somebody else since\nTo take back their changes, too: savepoint rollback snap_ID -- a\.txt\nTo redo: savepoint redo\n$/,
    )
    expect([space.read('a.txt'), existsSync(space.at('made'))]).toEqual(['by hand\n', false])
  })
})
