/** Every verb as a user types it: what it prints, the shape of its JSON, the next command it names, and its exit code. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint, savepointInShell, savepointJson, steady } from './support/built-cli.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a.txt', 'one\n')
  space.write('src/b.txt', 'b\n')
})
afterEach(() => space.remove())

/** Runs, expects the exit code and silence on stderr, and answers stdout without what differs each time. */
function say(args: string[], status = 0): string {
  const result = savepoint(space, args)
  expect({ args, status: result.status, stderr: result.stderr }).toEqual({ args, status, stderr: '' })
  return steady(result.stdout, space)
}
const keys = (value: object) => Object.keys(value)
const json = (...args: string[]) => savepointJson(space, args)
const idOf = (...args: string[]): string => savepoint(space, [...args, '-q']).stdout.trim()
const refused = (args: string[], status: number, message: RegExp) => {
  const result = savepoint(space, args)
  expect({ args, status: result.status, stdout: result.stdout }).toEqual({ args, status, stdout: '' })
  expect(result.stderr).toMatch(message)
}

const snapshotKeys = [
  'id',
  'type',
  'label',
  'backend',
  'created_at',
  'size_delta',
  'native_ref',
  'parent',
  'run',
  'stats',
  'tags',
  'head',
  'partial',
]
const restoreKeys = [
  'snapshot',
  'dry_run',
  'to',
  'files',
  'changes',
  'left_alone',
  'kept_dirs',
  'safety',
  'late_edits',
  'operation',
]
const operationKeys = ['id', 'kind', 'at', 'state', 'summary', 'before', 'after', 'head_before', 'head_after', 'rule']
const changeKeys = ['kind', 'path', 'from', 'before', 'after']
const runKeys = ['id', 'command', 'cwd', 'started_at', 'ended_at', 'exit_code', 'signal', 'pid', 'before', 'after']

describe('before there is a timeline', () => {
  const looking = [
    ...['status', 'snapshots', 'log', 'show', 'diff', 'changes', 'runs', 'operations', 'undo', 'redo', 'head'],
    ...['branches', 'tag', 'prune', 'gc', 'verify'],
  ]
  it('exit code 10 and how to begin, and nothing is made but the home', () => {
    for (const verb of looking) {
      refused(
        [verb],
        10,
        /^savepoint: Cannot find a timeline for .*: it is not protected yet\n {2}hint: .*savepoint snapshot/,
      )
    }
    for (const args of [
      ['history', 'a.txt'],
      ['coverage', 'a.txt'],
      ['rollback', 'x'],
      ['revert', 'a.txt'],
      ['delete', 'x'],
    ]) {
      refused(args, 10, /not protected yet/)
    }
    const { error } = JSON.parse(savepoint(space, ['status', '--json']).stderr)
    expect(keys(error)).toEqual(['code', 'message', 'hint', 'data'])
    expect(error.code).toBe('timeline.none')
  })
})

describe('snapshot and the lists', () => {
  it('snapshot: a line with size and counts; -q the id alone; --json the whole', () => {
    expect(say(['snapshot', '-m', 'first'])).toBe('snap_ID (first)  SIZE  2 files, SIZE\n')
    space.write('a.txt', 'two\n')
    space.write('c.txt')
    rmSync(space.at('src/b.txt'))
    expect(say(['snapshot'])).toBe('snap_ID  SIZE  1 added, 1 modified, 1 deleted\n')
    expect(savepoint(space, ['snapshot', '-q']).stdout).toMatch(/^snap_[a-z2-7]{8}\n$/)
    const made = json('commit', '-m', 'by alias')
    expect(keys(made)).toEqual(
      [...snapshotKeys, 'command', 'root', 'unsettled', 'skipped', 'deleted_at'].filter(key => key),
    )
    expect(made).toMatchObject({ type: 'manual', label: 'by alias', head: true, partial: false, skipped: [] })
    expect(made.root).toMatch(/^[0-9a-f]{64}$/)
  })

  it('snapshots: ID, TYPE, SIZE, CREATED, LABEL, newest first, and a footer', () => {
    say(['snapshot', '-m', 'first'])
    say(['run', '-q', '--', 'true'])
    space.write('a.txt', 'x'.repeat(50_000))
    say(['snapshot', '-m', 'two'])
    say(['tag', 'good'])
    const table = savepoint(space, ['snapshots']).stdout.split('\n')
    expect(table[0]).toMatch(/^ID {13}TYPE +SIZE {2}CREATED {2,}LABEL$/)
    expect(table[1]).toMatch(
      /^snap_[a-z2-7]{8} {2}manual +\+\d[\d.]* (B|KB) {2}(just now|\d+ seconds? ago) +two \(HEAD, tag: good\)$/,
    )
    expect(table[2]).toMatch(/^snap_[a-z2-7]{8} {2}pre-run +0 B {2}.* \$ true$/)
    expect(table.slice(-2)).toEqual(['3 snapshots (backend: cas)', ''])
    expect(say(['snapshots', '-n', '1'])).toMatch(/\n1 snapshot \(backend: cas\)\n$/)
    expect(savepoint(space, ['snapshots', '-q']).stdout.split('\n')).toHaveLength(4)
    const list = json('snapshots')
    expect(list.map(keys)).toEqual(Array(3).fill(snapshotKeys))
    expect(keys(list[0].stats)).toEqual(['added', 'modified', 'deleted', 'files', 'bytes', 'skipped'])
    expect(list[0]).toMatchObject({
      backend: 'cas',
      native_ref: null,
      label: 'two',
      parent: list[1].id,
      tags: ['good'],
    })
    expect(list[0].created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(list[1]).toMatchObject({ type: 'pre-run', run: expect.stringMatching(/^run_/), size_delta: 0 })
    expect(json('snapshots', list[1].run).map((one: { id: string }) => one.id)).toEqual([list[1].id])
  })

  it('log draws branches; branches lists their ends; head names the snapshot', () => {
    say(['snapshot', '-m', 'first'])
    space.write('a.txt', 'two\n')
    say(['snapshot', '-m', 'second'])
    say(['rollback', 'first'])
    space.write('a.txt', 'three\n')
    say(['snapshot', '-m', 'third'])
    expect(say(['log'])).toBe(
      '* snap_ID (HEAD) manual AGE ~1 third\n| * snap_ID manual AGE ~1 second\n|/\n* snap_ID manual AGE +2 first\n',
    )
    expect(say(['log', '-n', '1'])).toBe('* snap_ID (HEAD) manual AGE ~1 third\n')
    expect(keys(json('log')[0])).toEqual([...snapshotKeys, 'command', 'unsettled', 'children', 'leaf', 'shown_parent'])
    expect(say(['branches'])).toMatch(/third \(HEAD\)\n.*second\n2 snapshots \(backend: cas\)\n$/)
    expect(json('branches').map((one: { label: string }) => one.label)).toEqual(['third', 'second'])
    expect(say(['head'])).toBe('snap_ID  manual  AGE  1 modified  third\n')
    expect(idOf('head')).toBe(json('head').id)
    expect(keys(json('head'))).toEqual(snapshotKeys)
  })

  it('show: facts and changes; with a path the bytes of that file', () => {
    say(['snapshot', '-m', 'first'])
    const bytes = Buffer.from([0, 255, 10, 13, 128])
    space.write('bin', bytes)
    space.write('a.txt', 'two\n')
    say(['snapshot', '-m', 'second'])
    expect(say(['show']).replace(/(root|created) .*/g, '$1 …')).toBe(
      'snap_ID (HEAD)\n  type  manual\n  label  second\n  created …\n  parent  snap_ID\n  content  3 files, SIZE\n' +
        '  stored  SIZE (backend: cas)\n  changes  1 added, 1 modified\n  root …\n\n  M a.txt (4 B)\n  A bin (5 B)\n',
    )
    expect(say(['show', 'second', '--stat'])).toMatch(/ a\.txt \| +2 \+-\n bin +\| Bin 0 -> 5 bytes\n 2 files changed/)
    expect(say(['show', 'second', '-p'])).toContain('-one\n+two\n')
    const shown = json('show', 'second')
    expect(keys(shown).slice(-2)).toEqual(['deleted_at', 'changes'])
    expect(keys(shown.changes[0])).toEqual(changeKeys)
    space.sh(`${savepointInShell} show second bin | cmp - bin`)
    expect(savepoint(space, ['show', 'first', 'a.txt']).stdout).toBe('one\n')
    refused(['show', 'first', 'bin'], 12, /Cannot read bin in snap_.*: it is not there\n {2}hint: /)
  })
})

describe('what changed', () => {
  beforeEach(() => {
    say(['snapshot', '-m', 'first'])
  })

  it('status: protected, HEAD, changes, the last operation and how to undo it', () => {
    expect(say(['status'])).toBe(
      'BASE/work is protected: 1 snapshot, store SIZE in BASE/store home (backend: cas)\n' +
        'HEAD is snap_ID (first), manual, AGE\nNothing changed since\n',
    )
    savepoint(space, ['run', '--', 'sh', '-c', 'echo x > a.txt'])
    space.write('new')
    expect(say(['status'])).toMatch(
      /HEAD is snap_ID, final, AGE\nSince then: 1 added\n {2}A new\nLast operation: run_ID: sh -c 'echo x > a.txt', AGE\nTo undo: savepoint undo\n$/,
    )
    say(['undo'])
    expect(say(['status'])).toMatch(/Last operation: undo .*\nTo redo: savepoint redo\n$/)
    expect(keys(json('status'))).toEqual([
      ...['target', 'timeline', 'home', 'backend', 'head', 'snapshots', 'store_bytes', 'counts', 'changes', 'skipped'],
      ...['last_operation', 'writer'],
    ])
  })

  it('diff and changes: unified, --stat, --name-only, --name-status, renames, two snapshots, paths', () => {
    expect(say(['changes'])).toBe('Nothing changed since snap_ID\n')
    const none = savepoint(space, ['diff'])
    expect({ ...none, stderr: steady(none.stderr, space) }).toMatchObject({
      status: 0,
      stdout: '',
      stderr: 'savepoint: no difference between snap_ID and live\n',
    })
    space.write('a.txt', 'one\ntwo\n')
    space.sh('mv src/b.txt src/moved.txt; chmod 755 src/moved.txt')
    expect(say(['diff']).replace(/^index .*\n/gm, '')).toBe(
      'diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n' +
        'diff --git a/src/b.txt b/src/moved.txt\nold mode 100644\nnew mode 100755\nsimilarity index 100%\n' +
        'rename from src/b.txt\nrename to src/moved.txt\n',
    )
    expect(say(['diff', '--stat'])).toMatch(
      / a\.txt +\| 1 \+\n src\/{b\.txt => moved\.txt} \| 0\n 2 files changed, 1 insertion\(\+\)\n/,
    )
    expect(say(['diff', '--name-only'])).toBe('a.txt\nsrc/moved.txt\n')
    expect(say(['diff', '--name-status'])).toBe('M a.txt\nR src/b.txt -> src/moved.txt\n')
    expect(say(['changes'])).toBe('M a.txt (4 B -> SIZE)\nR src/b.txt -> src/moved.txt (2 B)\n')
    expect(json('changes')).toEqual(json('diff'))
    expect(say(['diff', '--name-only', '--', 'src'])).toBe('src/moved.txt\n')
    say(['snapshot', '-m', 'second'])
    expect(say(['diff', 'second', 'first', '--name-status'])).toBe('M a.txt\nR src/moved.txt -> src/b.txt\n')
    expect(say(['diff', 'first', '--name-only', 'a.txt'])).toBe('a.txt\n')
    const found = json('diff', 'first', 'second', '--stat')
    expect(keys(found)).toEqual(['from', 'to', 'changes'])
    expect(found.changes[0].lines).toEqual({ insertions: 1, deletions: 0 })
    expect(found.changes[1]).toMatchObject({ kind: 'renamed', from: 'src/b.txt', path: 'src/moved.txt' })
    expect(keys(json('changes'))).toEqual(['from', 'to', 'changes'])
  })

  it('the patch of diff applies with patch and git', () => {
    space.write('a.txt', 'changed\n')
    space.write('fresh.txt', 'no newline at the end')
    rmSync(space.at('src/b.txt'))
    const patch = savepoint(space, ['diff']).stdout
    say(['rollback', 'first'])
    space.sh(`git apply - <<'END'\n${patch}END\n`)
    expect(space.read('a.txt')).toBe('changed\n')
    expect(space.read('fresh.txt')).toBe('no newline at the end')
    expect(existsSync(space.at('src/b.txt'))).toBe(false)
  })

  it('history: the versions of a file, newest first, and how to bring one back', () => {
    space.write('a.txt', 'one and two\n')
    say(['snapshot', '-m', 'second'])
    say(['snapshot', '-m', 'same'])
    rmSync(space.at('a.txt'))
    say(['snapshot', '-m', 'third'])
    expect(say(['history', 'a.txt'])).toBe(
      'SNAPSHOT  STATUS  SIZE  CREATED  LABEL\nsnap_ID  deleted  AGE  third\nsnap_ID  modified  SIZE  AGE  second\n' +
        'snap_ID  new  SIZE  AGE  first\na.txt: does not exist now\nTo bring one back: savepoint revert a.txt --from SNAPSHOT\n',
    )
    expect(say(['history', 'a.txt', '--all'])).toContain('unchanged')
    const history = json('history', 'a.txt')
    expect(keys(history)).toEqual(['path', 'current_size', 'versions'])
    expect(keys(history.versions[0])).toEqual([
      ...['snapshot', 'type', 'label', 'created_at', 'status', 'reason', 'size', 'digest', 'mode'],
    ])
  })

  it('coverage: protected or not, by which rule, and which snapshot has it', () => {
    space.sh(`git init -q .; printf 'cache/\\n.env\\n' > .gitignore; mkdir cache; echo x > cache/x; echo S=1 > .env`)
    expect(say(['coverage', 'a.txt'])).toBe(
      'a.txt: protected, snapshots capture it\nsnap_ID (first), AGE, has exactly what is on disk now (1 snapshot in all)\n',
    )
    expect(say(['coverage', '.env'])).toBe(
      '.env: protected, snapshots capture it\nNo snapshot has a version of it yet. Take one: savepoint snapshot\n',
    )
    expect(say(['coverage', 'cache/x'])).toMatch(
      /^cache\/x: not protected, an ignore rule excludes it \(\.gitignore:1 cache\/\)\n/,
    )
    expect(json('coverage', 'cache')).toEqual({
      path: 'cache',
      covered: false,
      exists: true,
      reason: 'excluded',
      rule: '.gitignore:1 cache/',
      current: false,
      versions: 0,
      latest: null,
    })
    expect(say(['coverage', 'nothing'])).toBe('nothing does not exist now\nNo snapshot has a version of it\n')
  })

  it('coverage of what today’s rules exclude: whether the newest snapshot still has what is on disk', () => {
    const inAll = 'another version than the one on disk (1 snapshot in all)'
    space.write('.savepointignore', 'a.txt\nsrc/\n')
    for (const path of ['a.txt', 'src/b.txt', 'src']) {
      expect(say(['coverage', path])).toMatch(
        /not protected, an ignore rule .*\nsnap_ID.* has exactly what is on disk now/,
      )
      expect(json('coverage', path)).toMatchObject({ covered: false, current: true })
    }
    space.write('src/b.txt', 'B\n')
    for (const path of ['src/b.txt', 'src']) expect(say(['coverage', path])).toContain(inAll)
    expect(json('coverage', 'a.txt').current).toBe(true)
    rmSync(space.at('.savepointignore'))
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  max_file_bytes: 3\n')
    expect(json('coverage', 'a.txt')).toMatchObject({ reason: 'too-large', current: true })
    rmSync(space.at('a.txt'))
    expect(say(['coverage', 'a.txt'])).toMatch(/ has a version of it \(1 snapshot in all\)\n$/)
  })

  it('history of what was purged does not hint at a revert, which could not work', () => {
    say(['purge', 'a.txt', '--yes'])
    expect(say(['history', 'a.txt'])).toBe(
      'SNAPSHOT  STATUS  SIZE  CREATED  LABEL\nsnap_ID  purged  SIZE  AGE  first\na.txt: SIZE now\nNo snapshot can bring it back\n',
    )
    expect(json('history', 'a.txt').versions).toMatchObject([{ status: 'unknown', reason: 'purged' }])
    say(['snapshot', '-m', 'second'])
    expect(say(['history', 'a.txt'])).toContain('To bring one back: savepoint revert a.txt --from SNAPSHOT\n')
  })
})

describe('run', () => {
  it('keeps stdout for the command, says on stderr what changed and how to undo it', () => {
    const result = savepoint(space, ['run', '--', 'sh', '-c', 'echo out; rm src/b.txt; echo n > new; exit 7'])
    expect({ ...result, stderr: steady(result.stderr, space) }).toEqual({
      status: 7,
      signal: null,
      stdout: 'out\n',
      stderr:
        'savepoint: protecting BASE/work (snap_ID, 2 files)\nsavepoint: run run_ID: exit 7, TOOK; 1 added, 1 deleted\n' +
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
    expect(keys(lines[1])).toEqual(['run', 'exit_code', 'signal', 'counts', 'changes'])
    expect(keys(lines[1].run)).toEqual(runKeys)
    expect(lines[1].counts).toEqual({ added: 0, modified: 1, deleted: 0 })
  })

  it('126, 127, 128+n and stdin; --json after -- belongs to the command', () => {
    space.write('plain', 'no program')
    refused(
      ['run', '-q', '--', './plain'],
      126,
      /^savepoint: Cannot run \.\/plain: it is not executable\n {2}hint: chmod \+x \.\/plain\n$/,
    )
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
      "ID  EXIT  STARTED  TOOK  COMMAND\nrun_ID  3  AGE  TOOK  sh -c 'echo second > src/b.txt; exit 3'\n" +
        "run_ID  0  AGE  TOOK  sh -c 'echo first > a.txt'\n",
    )
    const runs = json('runs')
    expect(runs.map(keys)).toEqual([runKeys, runKeys])
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
    expect(keys(undone)).toEqual(['operation', 'effect', 'restore'])
    expect(keys(undone.operation)).toEqual(operationKeys)
    expect(keys(undone.restore)).toEqual(restoreKeys)
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

  it('3: what somebody else edited since is left alone, listed, and kept', () => {
    savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo agent > a.txt; echo agent > made'])
    space.write('a.txt', 'by hand\n')
    expect(say(['undo'], 3)).toMatch(
      /^Undone: run_ID: .*\nFiles: 1 deleted\nLeft alone \(1\):\n {2}a\.txt: edited by somebody else since\nTo redo: savepoint redo\n$/,
    )
    expect([space.read('a.txt'), existsSync(space.at('made'))]).toEqual(['by hand\n', false])
  })
})

describe('organise', () => {
  beforeEach(() => {
    say(['snapshot', '-m', 'first'])
    for (const i of [1, 2, 3]) {
      space.write('a.txt', `version ${i}\n`)
      savepoint(space, ['run', '-q', '--', 'sh', '-c', `echo ${i} > n`])
    }
  })

  it('tag: name, list, move, delete, each undone by undo', () => {
    expect(say(['tag'])).toBe('No tags yet. Name HEAD: savepoint tag NAME\n')
    expect(say(['tag', 'good'])).toBe('Tagged snap_ID as good\nTo undo: savepoint undo\n')
    expect(say(['tag', 'base', 'first'])).toBe('Tagged snap_ID as base\nTo undo: savepoint undo\n')
    expect(say(['tag'])).toBe(
      "TAG  SNAPSHOT  CREATED  LABEL\nbase  snap_ID  AGE  first\ngood  snap_ID  AGE  $ sh -c 'echo 3 > n'\n",
    )
    expect(json('tag').map(keys)).toEqual([
      ['name', 'snapshot'],
      ['name', 'snapshot'],
    ])
    expect(say(['tag', '-d', 'good'])).toBe('Deleted tag good\nTo undo: savepoint undo\n')
    expect(say(['undo'])).toMatch(/^Undone: .*good.*\nTo redo: savepoint redo\n$/)
    expect(json('tag').map((tag: { name: string }) => tag.name)).toEqual(['base', 'good'])
    refused(['tag', '-d', 'nothing'], 12, /Cannot .*nothing/)
    refused(['tag', 'a b'], 2, /^savepoint: Cannot use "a b" as a tag: .*\n {2}hint: /)
  })

  it('delete keeps for 7 days, undo brings it back; compact joins', () => {
    const all = json('snapshots').length
    expect(say(['delete', 'first'])).toBe('Done: delete snap_ID; kept for 7 days\nTo undo: savepoint undo\n')
    refused(['show', 'first'], 12, /Cannot find snapshot "first"/)
    expect(json('snapshots')).toHaveLength(all - 1)
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
    const [, second, third] = json('snapshots') as { id: string }[]
    expect(say(['compact', second!.id, third!.id, '-m', 'joined'])).toMatch(
      /^Joined 2 snapshots into snap_ID \(joined\) .*\nTo undo: savepoint undo\n$/,
    )
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
  })

  it('prune --dry-run names the rule, prune deletes, undo brings back; gc and verify', () => {
    const all = json('snapshots').length
    const plan = say(['prune', '--keep', '1', '--dry-run'])
    expect(plan).toMatch(/^ID {2}TYPE {2}CREATED {2}RULE {2}LABEL\n/)
    expect(plan).toMatch(/\nWould delete \d+ snapshots?, \d+ snapshots? kept\nNothing was changed \(dry run\)\n$/)
    expect(json('snapshots')).toHaveLength(all)
    expect(say(['prune', '--keep', '1'])).toMatch(
      /\nDeleted \d+ snapshots?, \d+ snapshots? kept\nTo undo: savepoint undo\n$/,
    )
    expect(json('snapshots').length).toBeLessThan(all)
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
    const decided = json('prune', '--dry-run')
    expect(keys(decided)).toEqual(['dry_run', 'decisions', 'operation'])
    expect(keys(decided.decisions[0])).toEqual(['snapshot', 'keep', 'rule'])
    expect(say(['gc'])).toMatch(/^(Nothing to free|Freed)/)
    expect(keys(json('gc'))).toEqual(['forgotten_snapshots', 'removed_objects', 'freed_bytes', 'store_bytes'])
    expect(say(['verify'])).toMatch(/^All good: \d+ objects, SIZE, \d+ snapshots\n$/)
    expect(keys(json('verify'))).toEqual(['ok', 'objects', 'bytes', 'snapshots', 'problems', 'repaired'])
  })

  it('export and import: the archive is a tar; the imported snapshot is the same tree', () => {
    for (const name of ['x.tar.zst', 'x.tar.gz']) {
      const file = join(space.base, name)
      expect(say(['export', 'HEAD', file])).toMatch(/^Wrote snap_ID into BASE\/x\.tar\.\w+: 3 files, SIZE\n$/)
      expect(space.sh(`tar -tf '${file}'`)).toContain('src/b.txt\n')
      expect(say(['import', file, '-m', name])).toMatch(
        /^Imported BASE\/x\S+ as snap_ID \(x\S+\): 3 files\nTo see it: savepoint rollback snap_ID --dry-run\n$/,
      )
      expect(say(['diff', name, 'HEAD', '--name-only', '-q'])).toBe('')
    }
  })

  it('purge: asks first, so elsewhere it needs --yes; the content is gone from the store', () => {
    space.write('.env', 'TOKEN=abcdefghijklmnop\n')
    say(['snapshot'])
    refused(
      ['purge', '.env'],
      2,
      /^savepoint: Cannot purge \.env: it cannot be undone, and nobody can be asked here\n {2}hint: If you are sure: savepoint purge \.env --yes\n$/,
    )
    expect(say(['purge', '.env', '--yes'])).toBe(
      'Purged .env: 1 version in 1 snapshot SIZE freed\n'.replace(' SIZE', ', SIZE'),
    )
    expect(space.read('.env')).toBe('TOKEN=abcdefghijklmnop\n')
    refused(['show', 'HEAD', '.env'], 12, /Cannot read \.env/)
  })
})

describe('the rest', () => {
  it('doctor: checks, configuration files, keys without effect', () => {
    space.write('savepoint.yaml', 'snapshots:\n  triggers:\n    disable_guard: true\n')
    const text = say(['doctor'])
    expect(text).toMatch(/^ok +node {2}v\d+/)
    expect(text).toMatch(
      /Configuration, the later wins:\n {2}BASE\/store home\/config\.yaml \(absent\)\n {2}BASE\/work\/savepoint\.yaml\n/,
    )
    expect(text).toMatch(/Set, but not in effect in this version:\n {2}snapshots\.triggers\.disable_guard\n$/)
    const result = json('doctor')
    expect(keys(result)).toEqual(['checks', 'not_yet_in_effect', 'config'])
    expect(keys(result.checks[0])).toEqual(['name', 'state', 'detail', 'fix'])
  })

  it('help: every verb is listed, and each has its own with examples', () => {
    const help = say(['--help'])
    expect(say([])).toBe(help)
    const names = [...help.matchAll(/^ {2}([a-z]+)(?:, [a-z, ]+)? {2}/gm)].map(match => match[1]!)
    expect(names).toEqual(
      expect.arrayContaining(['run', 'snapshot', 'undo', 'rollback', 'diff', 'log', 'demo', 'doctor']),
    )
    for (const name of names.filter(name => !['help', 'savepoint'].includes(name))) {
      expect(say([name, '--help'])).toMatch(new RegExp(`^Usage: savepoint ${name}[^]*\nExamples:\n {2}savepoint `))
    }
    expect(say(['help', 'undo'])).toBe(say(['undo', '--help']))
  })

  it('13: verbs, targets and backends of later versions are known by name', () => {
    refused(['mcp'], 13, /^savepoint: Cannot serve MCP \(mcp\): not in this version yet\n {2}hint: /)
    refused(['snapshot', '-t', 'env:x'], 13, /this version knows directories only/)
    space.write('savepoint.yaml', 'snapshots:\n  backend: btrfs\n')
    refused(['snapshot'], 13, /Cannot use backend btrfs: this version has cas only\n {2}hint: /)
  })

  it('-t works from anywhere, --home and $SAVEPOINT_HOME choose the store', () => {
    mkdirSync(join(space.base, 'elsewhere'))
    const there = { cwd: join(space.base, 'elsewhere') }
    expect(savepoint(space, ['snapshot', '-t', '../work'], there).status).toBe(0)
    expect(savepoint(space, ['-t', '../work', 'head', '-q'], there).stdout).toBe(`${idOf('head')}\n`)
    expect(savepoint(space, ['status', '--home', join(space.base, 'other home')]).status).toBe(10)
    expect(existsSync(join(space.userHome, '.savepoint'))).toBe(false)
    const { SAVEPOINT_HOME: _, ...env } = space.env
    expect(savepoint(space, ['snapshot'], { env }).status).toBe(0)
    expect(existsSync(join(space.userHome, '.savepoint/store'))).toBe(true)
  })
})
