/** The verbs that look: what they print, the shape of their JSON, the next command they name, and their exit codes. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint, savepointInShell, savepointJson, steady } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import { changeKeys, keys, snapshotKeys } from './support/json-keys.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { say, json, idOf, refused } = dialogue(() => space)

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

  it('status says when snapshots are off, and that nothing is protected before the first one', () => {
    space.write('savepoint.yaml', 'snapshots:\n  min_free_bytes: 900 TiB\n')
    refused(['snapshot'], 1, /Cannot capture: fewer than .* would stay free/)
    const { stdout, stderr } = savepoint(space, ['status'])
    expect(stdout).toMatch(/\/work is not protected yet: 0 snapshots,.*\nNo snapshot yet\. Take one/)
    expect(stderr).toMatch(
      /^savepoint: Cannot capture: fewer than .* would stay free .*: until there is room no snapshot can be taken/,
    )
    space.write('savepoint.yaml', 'snapshots:\n  disabled: true\n')
    expect(savepoint(space, ['status']).stderr).toBe(
      'savepoint: snapshots are turned off by the configuration: nothing new is captured\n',
    )
  })

  it('coverage answers for the first snapshot, and nothing is made', () => {
    space.sh(`git init -q .; printf 'cache/\\n.env\\n' > .gitignore; mkdir cache; echo x > cache/x; echo S=1 > .env`)
    const first = 'This directory has no snapshot yet. To take the first: savepoint snapshot\n'
    for (const path of ['a.txt', '.env', 'src', '.'])
      expect(say(['coverage', path])).toBe(
        `${path}: not captured yet, a snapshot would capture it\n${path === '.' ? 'but not 1 path below it: cache (excluded)\n' : ''}${first}`,
      )
    expect(say(['coverage', 'cache/x'])).toBe(
      `cache/x: would not be captured, an ignore rule excludes it (.gitignore:1 cache/)\n${first}`,
    )
    expect(say(['coverage', 'nothing'])).toBe(`nothing does not exist now\n${first}`)
    expect(json('coverage', 'cache')).toMatchObject({ covered: false, reason: 'excluded', versions: 0, latest: null })
    expect(json('coverage', '.env')).toMatchObject({ covered: true, versions: 0, latest: null })
    refused(['coverage', '../elsewhere'], 2, /lies outside the target/)
    const asHome = savepoint(space, ['coverage', 'a.txt'], { env: { ...space.env, HOME: space.dir } })
    expect(asHome).toMatchObject({
      status: 1,
      // Not its own --force, which it has not.
      stderr: expect.stringMatching(/your whole home directory\n {2}hint: .*`savepoint snapshot --force`/),
    })
    expect(existsSync(space.home)).toBe(false)
    const scratch = join(space.base, 'scratch')
    mkdirSync(scratch)
    expect(savepoint(space, ['coverage', 'src'], { env: { ...space.env, TMPDIR: scratch } }).status).toBe(0)
    expect(readdirSync(scratch)).toEqual([])
    refused(['status'], 10, /not protected yet/)
  })

  it('coverage after a rollback: the snapshot that has what is on disk, not the last one', () => {
    say(['snapshot', '-m', 'first'])
    space.write('a.txt', 'two\n')
    say(['snapshot', '-m', 'second'])
    say(['rollback', 'first'])
    for (const path of ['a.txt', '.']) {
      expect(say(['coverage', path])).toMatch(/^snap_ID \(first\), .*has exactly what is on disk now/m)
      expect(json('coverage', path)).toMatchObject({ current: true, latest: { label: 'first' } })
    }
    space.write('a.txt', 'three\n')
    expect(say(['coverage', 'a.txt'])).toMatch(/^snap_ID \(second\), .*has another version than the one on disk/m)
  })

  it('coverage of a directory: what is left out below it is named, and then no snapshot has all of it', () => {
    space.sh(`git init -q .; printf '*.o\n' > .gitignore; mkdir -p src/deep; echo x > src/deep/x.o; echo y > y.o`)
    say(['snapshot', '-m', 'first'])
    const left = (...paths: string[]) => ({
      left_out: { count: paths.length, paths: paths.map(path => ({ path, reason: 'excluded' })) },
    })
    for (const [path, ...names] of [
      ['src', 'src/deep/x.o'],
      ['.', 'src/deep/x.o', 'y.o'],
    ] as const) {
      const text = say(['coverage', path])
      expect(text).toContain(`but not ${names.length === 1 ? '1 path' : '2 paths'} below it: src/deep/x.o (excluded)`)
      expect(text).toMatch(/^snap_ID \(first\), .*has what is on disk now, but for what is left out/m)
      expect(json('coverage', path)).toMatchObject({ path, up_to_date: true, current: false, ...left(...names) })
    }
    rmSync(space.at('src/deep/x.o'))
    say(['snapshot'])
    expect(json('coverage', 'src')).toMatchObject({ up_to_date: true, current: true, ...left() })
    space.write('src/b.txt', 'changed\n')
    expect(json('coverage', '.')).toMatchObject({ up_to_date: false, current: false, ...left('y.o') })
  })

  it('coverage of a directory: what comes and goes of the left out, and times, make it no other version', () => {
    space.sh(`git init -q .; printf '*.o\n' > .gitignore; echo x > src/x.o`)
    say(['snapshot'])
    space.sh('rm src/x.o')
    expect(json('coverage', 'src')).toMatchObject({ up_to_date: true, current: true })
    space.sh('echo y > src/y.o; touch -d yesterday a.txt')
    for (const path of ['src', '.'])
      expect(json('coverage', path)).toMatchObject({ up_to_date: true, current: false, left_out: { count: 1 } })
    space.sh(`printf '' > .gitignore`)
    expect(json('coverage', 'src')).toMatchObject({ up_to_date: false, left_out: { count: 0 } })
    space.sh(`printf '*.o\n' > .gitignore; rm -r src; echo x > src`)
    expect(json('coverage', '.')).toMatchObject({ up_to_date: false })
  })

  it('coverage where snapshots are turned off: nothing new is protected, and what was captured is compared', () => {
    say(['snapshot', '-m', 'first'])
    space.write('savepoint.yaml', 'snapshots:\n  disabled: true\n')
    space.write('new', 'n\n')
    const off = 'not protected, snapshots are turned off by the configuration'
    expect(say(['coverage', 'new'])).toBe(`new: ${off}\nNo snapshot has a version of it\n`)
    expect(say(['coverage', 'a.txt'])).toMatch(
      /^a\.txt: not protected, .*\nsnap_ID \(first\), .*has exactly what is on disk now/,
    )
    expect(json('coverage', 'new')).toMatchObject({ covered: false, reason: 'disabled', current: false })
  })

  it('coverage of a directory with the store in it: whoever removes that has no snapshot left', () => {
    const home = space.at('src/store')
    const outcome = savepoint(space, ['--home', home, 'snapshot'])
    expect(outcome.status, outcome.stderr).toBe(0)
    const left = { count: 1, paths: [{ path: 'src/store', reason: 'store' }] }
    for (const path of ['src', '.'])
      expect(savepointJson(space, ['--home', home, 'coverage', path])).toMatchObject({ left_out: left, current: false })
  })

  it('coverage of a directory that is excluded by now: no snapshot has all of it where one left out a part', () => {
    space.sh(`git init -q .; printf '*.o\n' > .gitignore; mkdir build; echo b > build/b; echo x > build/x.o`)
    say(['snapshot', '-m', 'first'])
    space.sh('echo build/ >> .gitignore')
    expect(json('coverage', 'build')).toMatchObject({ covered: false, up_to_date: false, current: false })
    expect(say(['coverage', 'build'])).toContain('has another version than the one on disk')
    space.sh('rm build/x.o')
    expect(json('coverage', 'build')).toMatchObject({ covered: false, up_to_date: true, current: true })
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
      [...snapshotKeys, 'command', 'root', 'unsettled', 'coverage', 'skipped', 'deleted_at'].filter(key => key),
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

  it('log keeps trees apart that have no beginning in common', () => {
    say(['snapshot', '-m', 'first'])
    say(['export', 'first', join(space.base, 'first.tar')])
    say(['import', join(space.base, 'first.tar'), '-m', 'from outside'])
    expect(say(['log'])).toBe('* snap_ID import AGE +2 from outside\n\n* snap_ID (HEAD) manual AGE +2 first\n')
    expect(say(['log', '-n', '1'])).toBe('* snap_ID import AGE +2 from outside\n')
    expect(json('log').map(({ label }: { label: string }) => label)).toEqual(['from outside', 'first'])
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
    expect(keys(shown).slice(-3)).toEqual(['deleted_at', 'mounts', 'changes'])
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
      ...['last_operation', 'writer', 'running', 'interrupted'],
    ])
  })

  it('diff names the repositories whose own directories it leaves out', () => {
    say(['snapshot'])
    space.sh("git init -q 'su b'; git init -q other")
    const { stderr } = savepoint(space, ['diff'])
    const [, paths] = /inside \.git not shown; to see them: savepoint diff snap_\w+ -- (.*)\n/.exec(stderr)!
    expect(paths).toBe("other/.git 'su b/.git'")
    expect(say(['diff', '--name-only', '--', 'su b/.git'])).toContain('su b/.git/HEAD\n')
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

  it('a patch with a binary file is refused by git as a whole, and applies without it, as the help says', () => {
    space.write('a.txt', 'changed\n')
    space.write('src/image', Buffer.from([0, 1, 2, 3]))
    const file = join(space.base, 'patch')
    writeFileSync(file, savepoint(space, ['diff']).stdout)
    expect(() => space.sh(`git apply --check -R '${file}' 2>&1`)).toThrow()
    expect(say(['diff', '--help']).replace(/\s+/g, ' ')).toContain(
      'binary files, and what is too large, it only names, and `git apply` refuses it then, unless they are left out with --exclude=PATH',
    )
    space.sh(`git apply -R --exclude=src/image '${file}'`)
    expect([space.read('a.txt'), existsSync(space.at('src/image'))]).toEqual(['one\n', true])
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
    expect(keys(history)).toEqual(['path', 'current_size', 'directory', 'hidden', 'moved_to', 'kept', 'versions'])
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
      left_out: { count: 0, paths: [] },
      up_to_date: false,
      current: false,
      versions: 0,
      not_read: 0,
      may_be_in: [],
      kept: null,
      latest: null,
    })
    expect(say(['coverage', 'nothing'])).toBe('nothing does not exist now\nNo snapshot has a version of it\n')
    expect(say(['coverage', 'cache/gone'])).toBe(
      'cache/gone does not exist now, and an ignore rule keeps it out of snapshots (.gitignore:1 cache/)\n' +
        'No snapshot has a version of it\n',
    )
  })

  it('coverage of several paths: all are answered, in their order; one that is wrong stops it before the first', () => {
    say(['snapshot'])
    const one = (path: string) => say(['coverage', path])
    expect(say(['coverage', 'src', 'nothing', 'a.txt'])).toBe([one('src'), one('nothing'), one('a.txt')].join('\n'))
    const all = json('coverage', 'src', 'nothing', 'a.txt')
    expect(all).toEqual([json('coverage', 'src'), json('coverage', 'nothing'), json('coverage', 'a.txt')])
    refused(['coverage', 'a.txt', '/etc'], 2, /^savepoint: Cannot use \/etc: it lies outside the target\n/)
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
    savepoint(space, ['purge', 'a.txt', '--yes'])
    expect(say(['history', 'a.txt'])).toBe(
      'SNAPSHOT  STATUS  SIZE  CREATED  LABEL\nsnap_ID  purged  AGE  first\na.txt: SIZE now\nNo snapshot can bring it back\n',
    )
    expect(json('history', 'a.txt').versions).toMatchObject([{ status: 'unknown', reason: 'purged' }])
    say(['snapshot', '-m', 'second'])
    expect(say(['history', 'a.txt'])).toContain('To bring one back: savepoint revert a.txt --from SNAPSHOT\n')
  })
})
