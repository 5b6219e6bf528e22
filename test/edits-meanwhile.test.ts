/** Hand edits made while a run went on, in files that the run had touched before. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

it('what an editor put in the place of a file stays; what was written into one is undone, and named with the way back', async () => {
  for (const name of ['b', 'c', 'd']) space.write(name, `${name}1`)
  const touch = 'for each in a b c d; do echo r >> $each; done; echo own > own'
  const run = await startRun(space, `${touch}; READY; read line; echo r2 >> c; echo r3 > new; mv new d`)
  await untilLater(space, run.id)
  space.sh('echo hand >> a; echo hand > b.new; mv b.new b')
  const edited = space.read('a')
  run.say('end')
  await run.ended

  const { restore } = savepointJson(space, ['undo', '--dry-run'])
  expect([restore.mixed, restore.left_alone]).toEqual([['a'], [{ path: 'b', why: 'outside' }]])
  const { stdout, status } = savepoint(space, ['undo'])
  expect(status).toBe(3)
  expect(stdout).toContain('b: changed by somebody outside of the run while it went on\n')
  expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: a\n")
  expect(['a', 'b', 'c', 'd', 'own'].map(name => space.read(name))).toEqual(['a1', 'hand\n', 'c1', 'd1', undefined])

  const [, way] = /To have that back: savepoint (revert a --from snap_\w+)\n/.exec(stdout)!
  savepoint(space, way!.split(' '))
  expect(space.read('a')).toBe(edited)
})

it('what somebody removed after the run had changed it comes back, and is named; what the run removed or moved is not', async () => {
  for (const name of ['b', 'c', 'd/e']) space.write(name, `${name}1`)
  const touch = 'for each in a b c d/e; do echo r >> $each; done'
  const run = await startRun(space, `${touch}; rm b; READY; read line; mv c c2; mv d d2`)
  await untilLater(space, run.id)
  space.sh('rm a')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo', '--dry-run'])
  expect(restore.mixed).toEqual(['a'])
  const { stdout, status } = savepoint(space, ['undo'])
  expect(stdout).toContain('somebody else before it was removed, or removed by them: a\n')
  expect([status, ...['a', 'b', 'c', 'd/e'].map(name => space.read(name))]).toEqual([0, 'a1', 'b1', 'c1', 'd/e1'])
})

/** The processes of a run are looked at every two seconds, and what was touched less than one ago is left to the next time. */
const LET_GO_MS = 4000

describe('what somebody wrote into a file when the run had let go of it', () => {
  it('stays, also in what the run only moved; what it holds still counts as its own', async () => {
    for (const name of ['b', 'c', 'd/e', 'log', 'linked']) space.write(name, `${name}1\n`)
    space.sh('ln linked ../other')
    // The agent itself goes on; a child that wrote is gone.
    const agent = 'echo r > a; sh -c "echo r > b"; mv c c2; mv d d2; echo r > linked; exec 9>> log; echo r >&9'
    const run = await startRun(space, `${agent}; READY; read line; echo r2 >&9`)
    await pause(LET_GO_MS)
    space.sh('for each in a b c2 d2/e log linked; do echo hand >> $each; done')
    const edited = ['a', 'b', 'c2', 'd2/e'].map(name => space.read(name))
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    expect(restore.left_alone.map(({ path }: { path: string }) => path).sort()).toEqual(['a', 'b', 'c2', 'd2/e'])
    expect(restore.mixed).toEqual(['linked', 'log'])
    expect(['a', 'b', 'c2', 'd2/e'].map(name => space.read(name))).toEqual(edited)
    expect([space.read('log'), space.read('linked')]).toEqual(['log1\n', 'linked1\n'])
  })

  it('stays while the run goes on, and when it fails', async () => {
    const run = await startRun(space, 'echo r > a; echo own > own; READY; read line; exit 3', {
      args: ['--on-failure', 'rollback'],
    })
    await pause(LET_GO_MS)
    space.sh('echo hand >> a')
    expect(savepointJson(space, ['rollback', run.id, '--dry-run']).left_alone).toEqual([{ path: 'a', why: 'outside' }])
    run.say('end')
    expect((await run.ended).stderr).toContain('a: changed by somebody outside of the run while it went on\n')
    expect([space.read('a'), space.read('own')]).toEqual(['r\nhand\n', undefined])
  })
})

const isRoot = process.getuid!() === 0
/** Its first thread ends, and another one goes on. */
const headless = `
import ctypes, os, sys, threading
def work():
    log = open('log', 'a', buffering=1)
    print('r', file=log)
    print('READY', os.environ['SAVEPOINT_RUN'], flush=True)
    sys.stdin.readline()
    print('r2', file=log)
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
`
const writes = 'exec 9>> log; echo r >&9; READY; read line; echo r2 >&9'
const holders: [how: string, script: string][] = [
  ['in a mount namespace of its own', `exec unshare -m sh -c 'mount --bind . ../there; cd ../there; ${writes}'`],
  ['through a mount of the target elsewhere', `cd ../mounted; ${writes}`],
  ['when its first thread has ended', 'exec python3 ../headless.py # READY'],
]
it.skipIf(!isRoot)(
  'what the run holds in a way that is not plain to see is not let go: nobody else has written it',
  async () => {
    space.write('log', '1\n')
    space.write('../headless.py', headless)
    space.sh('mkdir ../there ../mounted; mount --bind . ../mounted')
    try {
      const told: unknown[] = []
      for (const [how, script] of holders) {
        const run = await startRun(space, script)
        await pause(LET_GO_MS)
        run.say('end')
        await run.ended
        told.push([how, savepointJson(space, ['undo']).restore.left_alone, space.read('log')])
      }
      expect(told).toEqual(holders.map(([how]) => [how, [], '1\n']))
    } finally {
      space.sh('umount ../mounted')
    }
  },
)

/** Commands for one that keeps a database open: each line is carried out, and answered. */
const databaseClient = `
import { DatabaseSync } from 'node:sqlite'
import { createInterface } from 'node:readline'
const database = new DatabaseSync(process.argv[2])
for await (const line of createInterface(process.stdin)) {
  database.exec(line)
  console.log('done')
}`

it.each(['while the run goes on', 'also after its end'])(
  'a database that somebody else has open (SQLite, with a log): its files stay together, %s',
  async when => {
    space.write('../client.mjs', databaseClient)
    const server = spawn(process.execPath, [space.at('../client.mjs'), space.at('app.db')], { cwd: space.dir })
    const ask = async (statement: string) => {
      server.stdin.write(`${statement}\n`)
      await once(server.stdout, 'data')
    }
    const insert = `INSERT INTO t SELECT randomblob(3000) FROM (VALUES ${Array(40).fill('(1)').join(',')})`
    await ask('PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)')
    await ask(insert)
    space.write('../migrate.sql', `CREATE TABLE u (y); ${insert}; PRAGMA wal_checkpoint; INSERT INTO u VALUES (1);\n`)
    const migrate = `${process.execPath} ../client.mjs app.db < ../migrate.sql > /dev/null`
    const run = await startRun(space, `${migrate}; echo own > own; READY; read line`)
    await pause(LET_GO_MS)
    await ask(insert)
    run.say('end')
    await run.ended
    if (when.includes('after')) await ask(insert)
    expect(savepoint(space, ['undo']).status).toBe(3)
    server.kill('SIGKILL')
    await once(server, 'exit')
    const database = new DatabaseSync(space.at('app.db'))
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(database.prepare('SELECT count(*) AS rows FROM t').get()).toEqual({
      rows: when.includes('after') ? 160 : 120,
    })
    database.close()
    expect(space.read('own')).toBeUndefined()
  },
)

it('what goes through a pipe is no edit of it: one that was there stays, one of the run goes, one in its place stays', async () => {
  space.sh('mkfifo there')
  const pass = 'for each in there own; do read word < $each & echo word > $each; wait; done'
  const run = await startRun(space, `mkfifo own theirs; READY; read line; ${pass}`)
  await untilLater(space, run.id)
  space.sh('rm theirs; mkfifo theirs')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo'])
  expect([restore.mixed, restore.left_alone]).toEqual([[], [{ path: 'theirs', why: 'outside' }]])
  expect(readdirSync(space.dir).sort()).toEqual(['a', 'theirs', 'there'])
})

it('a link that somebody put in the place of a file that the run had touched stays; one that the run then removes is named', async () => {
  for (const name of ['b', 'c']) space.write(name, `${name}1`)
  const run = await startRun(space, 'for each in a b c; do echo r >> $each; done; READY; read line; rm c')
  await untilLater(space, run.id)
  space.sh('rm a c; ln -s there a; ln -s there c')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo'])
  expect([restore.mixed, restore.left_alone]).toEqual([['c'], [{ path: 'a', why: 'outside' }]])
  expect([readlinkSync(space.at('a')), space.read('b'), space.read('c')]).toEqual(['there', 'b1', 'c1'])
})

it('beside a run that leaves a process behind, what others did stays', async () => {
  const run = await startRun(space, 'sleep 600 > /dev/null 2>&1 & READY; read line; echo own > own; kill -9 $!')
  const left = await startRun(
    space,
    'sleep 600 > /dev/null 2>&1 & echo $! > ../pid; READY; read line; echo left > left',
  )
  space.sh('echo hand > a; echo hand > new')
  run.say('end')
  left.say('end')
  await Promise.all([run.ended, left.ended])
  for (const each of [run, left]) {
    const { left_alone } = savepointJson(space, ['rollback', each.id])
    expect(left_alone).toEqual(expect.arrayContaining([{ path: 'a', why: 'outside' }]))
  }
  expect(['a', 'new', 'own', 'left'].map(name => space.read(name))).toEqual(['hand\n', 'hand\n', undefined, undefined])
  space.sh('kill -9 $(cat ../pid)')
})

it('what was edited is left alone, or named, also while the run goes on', async () => {
  space.write('b', 'b1')
  const run = await startRun(space, 'echo r > a; echo r > b; READY; read line')
  await untilLater(space, run.id)
  space.sh('echo hand > a.new; mv a.new a; echo hand >> b')
  const result = savepointJson(space, ['rollback', run.id, '--keep-running'])
  expect([result.left_alone, result.mixed]).toEqual([[{ path: 'a', why: 'outside' }], ['b']])
  expect([space.read('a'), space.read('b')]).toEqual(['hand\n', 'b1'])
  run.say('end')
  await run.ended
})

it('a move that failed is known to have by the time that somebody asks, also of who does nothing else', async () => {
  space.sh('mkdir d e; echo 1 > d/f; echo 1 > e/f')
  const script =
    'import os\ntry: os.rename("d", "e")\nexcept OSError: pass\nprint("READY", os.environ["SAVEPOINT_RUN"], flush=True)\ninput()'
  space.write('../idle.py', script)
  const run = await startRun(space, 'exec python3 ../idle.py # READY', {})
  await untilLater(space, run.id)
  space.sh('echo hand > e/f; echo hand > e/new')
  expect(savepointJson(space, ['rollback', run.id, '--keep-running']).left_alone).toEqual([
    { path: 'e/f', why: 'outside' },
    { path: 'e/new', why: 'outside' },
  ])
  run.say('end')
  await run.ended
})

it('what somebody edited or made is kept, and named, when the run then removes it, also after a snapshot of what the run had done', async () => {
  space.sh('mkdir docs; echo 1 > docs/notes; touch -d 2020-01-01 docs/notes')
  const run = await startRun(space, 'echo r > a; READY; read line; rm -rf docs')
  await untilLater(space, run.id)
  space.sh('echo hand > docs/notes; echo hand > docs/new')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.mixed).toEqual(['docs/new', 'docs/notes'])
  const kept = ['docs/notes', 'docs/new'].map(path =>
    savepointJson(space, ['history', path]).versions.some(({ size }: { size: number }) => size === 5),
  )
  expect(kept).toEqual([true, true])
})

it('what somebody put in the place of a file of the run, with older times, is named, also when the run writes it again', async () => {
  space.write('b', 'b1')
  space.sh('echo hand > ../old; touch -d 2001-01-01 ../old')
  const run = await startRun(space, 'echo r > a; echo r > b; READY; read line; echo r2 > b')
  await untilLater(space, run.id)
  space.sh('cp -p ../old a; cp -p ../old b')
  run.say('end')
  await run.ended
  expect(savepointJson(space, ['undo']).restore.mixed).toEqual(['a', 'b'])
})

it('what somebody edited before the run moved the directory is named, where the run had written it as well', async () => {
  const run = await startRun(space, 'mkdir new; echo r > new/x; echo r > new/y; READY; read line; mv new final')
  await untilLater(space, run.id)
  space.sh('echo hand >> new/x')
  run.say('end')
  await run.ended
  expect(savepointJson(space, ['undo']).restore.mixed).toEqual(['final/x'])
})

it('what somebody moved there, with its old times, or gave another name, is named where the run has written it', async () => {
  space.write('b', 'b1')
  space.sh('touch -d 2020-01-01 a b')
  const run = await startRun(space, 'echo r > b; READY; read line; echo r >> moved')
  await untilLater(space, run.id)
  space.sh('mv a moved; ln b linked')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.mixed).toEqual(['linked', 'moved'])
  expect(space.read('b')).toBe('b1')
})

it('a file does not come back where somebody is at work in the directory that took its place, and that is said', async () => {
  const run = await startRun(space, 'rm a; mkdir a; READY; read line')
  await untilLater(space, run.id)
  space.write('a/hand', 'hand')
  run.say('end')
  await run.ended
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.left_alone).toEqual([
    { path: 'a/hand', why: 'outside' },
    { path: 'a', why: 'in-the-way' },
  ])
  expect(space.read('a/hand')).toBe('hand')
})

it('what is in a directory that the run could not remove, because something was in it, is not its work', async () => {
  for (const name of ['dir/gone', 'dir/f']) space.write(name, `${name}1`)
  // git asks for the directory to go with whatever it removes; so does much else.
  const run = await startRun(space, 'READY; read line; rm dir/gone; rmdir dir || :')
  space.sh('echo hand > dir/f; echo hand > dir/new')
  run.say('end')
  const { stderr } = await run.ended
  expect(stderr).toContain('1 deleted\n')

  const { stdout, status } = savepoint(space, ['undo'])
  expect([status, space.read('dir/gone')]).toEqual([3, 'dir/gone1'])
  expect(stdout).toContain('dir/f: changed by somebody outside of the run while it went on\n')
  expect([space.read('dir/f'), space.read('dir/new')]).toEqual(['hand\n', 'hand\n'])
})

it('what somebody wrote before the run did, or between two writes of the run, is undone and named', async () => {
  for (const name of ['b', 'c', 'd']) space.write(name, `${name}1\n`)
  const again = 'echo r2 >> a; echo r2 > new; mv new b; echo r2 >> c; mv d e'
  const run = await startRun(space, `echo r > a; echo r >> b; READY; read line; ${again}`)
  await untilLater(space, run.id)
  for (const name of ['a', 'b', 'c', 'd']) space.sh(`echo hand >> ${name}`)
  run.say('end')
  await run.ended

  const edited = space.read('a')
  expect(edited).toBe('r\nhand\nr2\n')
  const { restore } = savepointJson(space, ['undo', '--dry-run'])
  expect([restore.mixed, restore.left_alone]).toEqual([['a', 'b', 'c', 'e'], []])
  const { stdout, status } = savepoint(space, ['undo'])
  expect([status, space.read('a'), space.read('d')]).toEqual([0, 'a1', 'd1\n'])
  expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: a, b, c, e\n")
  const [, snapshot] = /To have that back: savepoint revert a b c e --from (snap_\w+)\n/.exec(stdout)!
  savepoint(space, ['revert', 'a', '--from', snapshot!])
  expect(space.read('a')).toBe(edited)
})

it('the same with a directory that the run moved: what was edited in it is named, what is new stays', async () => {
  for (const name of ['dir/edited', 'dir/own', 'dir/same', 'dir/deep/f', 'ignored/f']) space.write(name, `${name}1`)
  space.write('.gitignore', 'ignored/')
  const moves = 'mv dir e; mv e/deep e/low; echo r > e/made; mv ignored now'
  const run = await startRun(space, `echo r > dir/own; READY; read line; ${moves}`)
  space.sh('echo hand > dir/edited; echo hand > dir/deep/f; echo hand > dir/new')
  run.say('end')
  await run.ended

  const { stdout } = savepoint(space, ['undo'])
  expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: e/edited, e/low/f\n")
  expect([space.read('dir/edited'), space.read('e/new')]).toEqual(['dir/edited1', 'hand\n'])
  const [, snapshot] = /To have that back: savepoint revert e\/edited .* --from (snap_\w+)\n/.exec(stdout)!
  savepoint(space, ['revert', 'e/edited', '--from', snapshot!])
  expect(space.read('e/edited')).toBe('hand\n')
})

it('the same where the run gave it another name first, or moved it out of the directory: it is named by the name that comes back', async () => {
  for (const name of ['b', 'c', 'd', 'own', 'dir/f']) space.write(name, `${name}1`)
  const moves = 'mv a x; mv x y; rm y; mv b c; rm c; mv d ../away; mv own z; rm z'
  const run = await startRun(space, `mv dir e; READY; read line; ${moves}; rm -r e`)
  await untilLater(space, run.id)
  for (const name of ['a', 'b', 'd', 'e/f']) space.sh(`echo hand > ${name}`)
  run.say('end')
  await run.ended

  const { stdout } = savepoint(space, ['undo'])
  // c was edited as b, which took its place.
  expect(stdout).toContain(
    'May have been edited by somebody else before it was removed, or removed by them: a, b, c, d, dir/f\n',
  )
  expect([space.read('a'), space.read('own'), space.read('dir/f')]).toEqual(['a1', 'own1', 'dir/f1'])
})

it('what somebody wrote before the run removed or replaced it is undone, and named with the way to it', async () => {
  for (const name of ['dir/c', 'd', 'own']) space.write(name, `${name}1`)
  const run = await startRun(space, 'READY; read line; rm -r dir; rm a own; echo r > new; mv new d')
  await untilLater(space, run.id)
  for (const name of ['a', 'dir/c', 'd']) space.sh(`echo hand > ${name}`)
  run.say('end')
  await run.ended

  const { restore } = savepointJson(space, ['undo', '--dry-run'])
  expect([restore.mixed, restore.left_alone]).toEqual([['a', 'd', 'dir/c'], []])
  const { stdout } = savepoint(space, ['undo'])
  expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: d\n")
  expect(stdout).toContain(
    'May have been edited by somebody else before it was removed, or removed by them: a, dir/c\n',
  )
  expect(stdout).toContain('Versions that the run replaced or removed: savepoint history a; savepoint history dir/c\n')
  for (const name of ['a', 'dir/c', 'd']) {
    const { versions } = savepointJson(space, ['history', name])
    const found = versions.map(({ snapshot }: { snapshot: string }) => {
      savepoint(space, ['revert', name, '--from', snapshot])
      return space.read(name)
    })
    expect(found).toContain('hand\n')
  }
})

describe('a repository in which somebody commits while a run goes on', () => {
  beforeEach(() => {
    space.write('mine', 'm1\n')
    space.sh('git init -q; git add -A; git commit -qm one')
  })
  const commitDuring = async (script: string) => {
    const run = await startRun(space, `${script}; READY; read line`)
    space.sh('echo m2 > mine; git commit -qm hand mine')
    run.say('end')
    await run.ended
  }
  const commits = () => space.git('log', '--format=%s').trimEnd().split('\n')

  it('stays when the run has only looked at it, and is named', async () => {
    // A clone links the objects of the other.
    await commitDuring('echo r > own; touch mine; git status -s > ../status; git clone -q . clone')
    const { stdout, status } = savepoint(space, ['undo'])
    expect(stdout).toContain('\n  .git: changed by somebody outside of the run while it went on\n')
    expect([status, commits(), space.read('own')]).toEqual([3, ['hand', 'one'], undefined])
    expect(space.git('fsck', '--strict')).toBe('')
  })

  it('stays when the run has looked at a linked worktree and a submodule of it', async () => {
    const file = 'git -c protocol.file.allow=always'
    space.sh(`git worktree add -q -b side wt; ${file} submodule --quiet add ./ sub; git commit -qm two`)
    const look = (place: string) => `touch ${place}/mine; git -C ${place} status -s > ../status`
    await commitDuring(`echo r > own; ${look('wt')}; ${look('sub')}`)
    const { restore } = savepointJson(space, ['undo'])
    expect(restore.left_alone).toContainEqual({ path: '.git', why: 'outside' })
    expect([restore.mixed, commits(), space.read('own')]).toEqual([[], ['hand', 'two', 'one'], undefined])
  })

  it('goes back as a whole when the run has made a reference that is called index', async () => {
    space.sh('git worktree add -q --detach wt')
    await commitDuring('git -C wt update-ref refs/worktree/index HEAD')
    savepoint(space, ['undo'])
    expect(commits()).toEqual(['one'])
  })

  it('goes back as a whole when the run has worked in it, too, and is named with the way back', async () => {
    await commitDuring('echo r > own; git add own; git commit -qm own')
    const { stdout } = savepoint(space, ['undo'])
    expect(commits()).toEqual(['one'])
    expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: .git\n")
    const [, way] = /To have that back: savepoint (revert \.git --from snap_\w+)\n/.exec(stdout)!
    savepoint(space, way!.split(' '))
    expect([commits(), space.git('fsck', '--strict')]).toEqual([['hand', 'own', 'one'], ''])
  })

  it.each([
    ['its settings', 'git config core.x 1', 'git remote add origin x'],
    [
      'a branch, and the run then packs',
      'git commit -q --allow-empty -m own; git gc -q',
      'echo hand > b; git add b; git commit -qm hand',
    ],
  ])('goes back as a whole when both have changed %s, and is named', async (_what, own, byHand) => {
    const run = await startRun(space, `READY; read line; ${own}`)
    await pause(50)
    space.sh(byHand)
    run.say('end')
    await run.ended
    expect(savepointJson(space, ['undo']).restore.mixed).toContain('.git')
  })

  it('is not named when nobody else was there', async () => {
    const run = await startRun(space, 'echo r > own; git add own; git commit -qm own; git gc -q; READY; read line')
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    expect([restore.mixed, restore.left_alone, commits()]).toEqual([[], [], ['one']])
  })
})

describe('a file with two names', () => {
  const contents = () => ['a', 'src/f', 'hard'].map(name => space.read(name))
  beforeEach(() => {
    space.write('src/f', 'f1\n')
    space.sh('ln src/f hard')
  })

  it('that somebody edits while a run goes on is left alone under both', async () => {
    const run = await startRun(space, 'echo r > a; READY; read line')
    space.sh('echo hand >> src/f')
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    const outside = ['hard', 'src/f'].map(path => ({ path, why: 'outside' }))
    expect([restore.left_alone, contents()]).toEqual([outside, ['a1', 'f1\nhand\n', 'f1\nhand\n']])
    expect(space.sh('test hard -ef src/f && echo one')).toBe('one\n')
  })

  it('that the run wrote, and then somebody else by the other, is undone and named, or left alone, under both', async () => {
    space.write('g', 'g1\n')
    space.sh('ln g g2')
    const run = await startRun(space, 'echo r >> hard; echo r >> g; READY; read line')
    await untilLater(space, run.id)
    space.sh('echo hand >> src/f; echo hand > new; ln new new2; mv new g; mv new2 g2')
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    const outside = ['g', 'g2'].map(path => ({ path, why: 'outside' }))
    expect([restore.mixed, restore.left_alone]).toEqual([['hard', 'src/f'], outside])
    expect([contents(), space.read('g'), space.read('g2')]).toEqual([['a1', 'f1\n', 'f1\n'], 'hand\n', 'hand\n'])
  })

  it('that the run wrote by the one goes back under both', async () => {
    const run = await startRun(space, 'echo r > a; echo r >> hard; READY; read line')
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    expect([restore.left_alone, contents()]).toEqual([[], ['a1', 'f1\n', 'f1\n']])
  })

  it.each(['goes on', 'has ended'])(
    'that another run wrote stays so under both when one that %s is taken back',
    async state => {
      const run = await startRun(space, 'echo r > a; READY; read line')
      expect(savepoint(space, ['run', '--', 'sh', '-c', 'echo r2 >> src/f']).status).toBe(0)
      if (state === 'has ended') {
        run.say('end')
        await run.ended
      }
      const { left_alone } = savepointJson(space, ['rollback', run.id])
      expect([left_alone, contents()]).toEqual([[], ['a1', 'f1\nr2\n', 'f1\nr2\n']])
      expect(space.sh('test hard -ef src/f && echo one')).toBe('one\n')
    },
  )

  it('that two runs wrote, each by another name, is left alone under both', async () => {
    const run = await startRun(space, 'echo r >> hard; READY; read line')
    savepoint(space, ['run', '--', 'sh', '-c', 'echo r2 >> src/f'])
    run.say('end')
    await run.ended
    const { restore } = savepointJson(space, ['undo'])
    const overlapped = ['hard', 'src/f'].map(path => ({ path, why: 'overlapped' }))
    expect([restore.left_alone, contents()]).toEqual([overlapped, ['a1', 'f1\nr\nr2\n', 'f1\nr\nr2\n']])
  })
})
