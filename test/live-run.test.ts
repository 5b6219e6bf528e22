/** Snapshots on the way: before what destroys, after what is a milestone, when it rests. Each with the command behind it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { compileC } from './support/c-program.ts'
import { gated } from './support/machine.ts'
import { inSteps } from './support/steps.ts'
import { uringWriter } from './support/uring-writer.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(() => {
  space = new Workspace()
  space.write('src/a', 'a1\n')
  space.write('src/b', 'b1\n')
})
afterEach(() => space.remove())

/** Those triggers that are not asked about would only be in the way; and no guard is given up for a busy machine. */
const settings = (triggers: string) =>
  `snapshots:\n  triggers:\n    disable_idle: true\n    guard_max_hold_ms: 60000\n    ${triggers}\n`

async function run(script: string, triggers = ''): Promise<Snapshot[]> {
  space.write('savepoint.yaml', settings(triggers))
  savepoint = await space.open()
  const { exitCode } = await savepoint.run({ command: ['sh', '-c', `exec >/dev/null 2>&1\n${script}`] })
  expect(exitCode).toBe(0)
  return onTheWay()
}

/** Each script, and how many snapshots are there on the way when it has led to what it leads to. */
async function runInSteps(config: string, steps: [script: string, snapshots: number | (() => boolean)][]) {
  space.write('savepoint.yaml', config)
  savepoint = await space.open()
  await inSteps(
    space,
    steps.map(([script, awaited]) => [
      script,
      typeof awaited === 'number' ? () => onTheWay().length >= awaited : awaited,
    ]),
    script => savepoint.run({ command: ['bash', '-c', `exec >/dev/null 2>&1\n${script}`] }),
  )
  return onTheWay()
}

const besides: ReadonlySet<string> = new Set(['pre-run', 'final', 'kept'])
const onTheWay = (): Snapshot[] => savepoint.snapshots().filter(({ type }) => !besides.has(type))
const types = (snapshots: Snapshot[]): string[] => snapshots.map(({ type }) => type)
const hasPath = (id: string, path: string): boolean => {
  try {
    return savepoint.read(id, path).length > 0
  } catch {
    return false
  }
}
const noteOf = (start: string): string | undefined =>
  savepoint.trace().executions.find(({ argv }) => argv.join(' ').startsWith(start))?.note

describe('guard', () => {
  it('is not kept from it by an operand that cannot be there: below a file', async () => {
    const [guard] = await run('echo file > f; echo precious > src/new; rm -rf f/below src')
    expect(savepoint.read(guard!.id, 'src/new').toString()).toBe('precious\n')
    await run('echo 1 > ../out; echo 2 > ../out.new; echo dirty > f; mv ../out.new ../out')
    expect(noteOf('mv ')).toBeUndefined()
  })

  it('what was made in the run is there before it is destroyed', async () => {
    const [guard, ...others] = await run('echo precious > src/new; rm -rf src')
    expect([guard, others]).toEqual([expect.objectContaining({ type: 'guard', command: 'rm -rf src' }), []])
    expect(savepoint.read(guard!.id, 'src/new').toString()).toBe('precious\n')
    expect(noteOf('rm -rf')).toBe(`guarded by ${guard!.id}`)
    await savepoint.revert('src', { from: guard!.id })
    expect(space.read('src/new')).toBe('precious\n')
  })

  const destroy: [command: string, isGuarded: boolean][] = [
    ['rm -r src', true],
    ['rm -fr src/', true],
    ['rm --recursive -- src', true],
    ['env rm -rf src', true],
    ['/bin/rm -Rf "$PWD/src"', true],
    ['cd src; rm -rf ../src', true],
    ['sh -c "exec rm -r src"', true],
    ['find src -type f -delete', true],
    ['find src -type f -exec rm {} +', true],
    ['find . -name "a*" -exec rm {} \\;', true],
    ['dd if=/dev/null of=src/a 2>/dev/null', true],
    ['truncate -s 0 src/a', true],
    ['shred src/a', true],
    ['mv src/b src/a', true],
    ['mkdir d; echo 1 > d/b; mv src/b d', true],
    ['sed -i s/a/b/ src/a', true],
    ['perl -pi -e s/a/b/ src/a', true],
    ['find src -type f | xargs rm -f', true],
    ['cd ../elsewhere; find "$OLDPWD/src" -type f -print0 | xargs -0 rm -f', true],
    ['cd ../elsewhere; rm -rf $(seq 5000) "$OLDPWD/src"', true],
    ['yes | git checkout -p', true],
    ['git reset -q --hard', true],
    ['git -C src clean -qfd ..', true],
    ['git checkout -q -- .', true],
    ['git restore src', true],
    ['git stash -q', true],
    ['git -c alias.oops="reset -q --hard" oops', true],
    ['find -L src -type f -delete', true],
    ['find ../link -type f -delete', false],
    ['find -L ../link -type f -delete', true],
    ['find ../link/ -type f -delete', true],
    ['truncate -s 0 ../link/a', true],
    ['truncate -s 0 ../link-a', true],
    ['dd if=/dev/null of=../link-a 2>/dev/null', true],
    ['rm -rf ../link-a', false],
    ['ln -s $(command -v rm) ../wipe; ../wipe -rf src', true],
    ['bash -c "exec -a wipe rm -rf src"', true],
    ['cd /; GIT_DIR="$OLDPWD/.git" GIT_WORK_TREE="$OLDPWD" git reset -q --hard', true],
    ['cd /; git --git-dir="$OLDPWD/.git" --work-tree="$OLDPWD" reset -q --hard', true],
    ['cd ../elsewhere; git init -q; git commit -q --allow-empty -m x; git reset -q --hard', false],
    ['git merge -q --abort 2>/dev/null; git rebase --abort 2>/dev/null; true', false],
    ['mkdir d; mv src/b d', false],
    ['mkdir d; mv src/b d/', false],
    ['mkdir d; echo 1 > d/b; mv -t d src/b', true],
    ['mv -T src/b src/a', true],
    ['rm src/a', false],
    ['rm -rf nothing', false],
    ['rm -rf ../elsewhere', false],
    ['find src -type f | xargs grep -l a', false],
    ['rm -rf ignored', false],
    ['mv src/b src/c', false],
    ['mv -n src/b src/a', false],
    ['find src -name a >/dev/null', false],
    ['sed -n p src/a >/dev/null', false],
    ['git reset -q', false],
    ['git clean -qn', false],
    ['git stash list', false],
    ['git checkout -q -b other', false],
  ]
  it.each(destroy)('%s: %s', async (command, isGuarded) => {
    space.write('.gitignore', 'ignored\n')
    space.write('ignored/x')
    space.sh(
      'mkdir ../elsewhere; ln -s work/src ../link; ln -s work/src/a ../link-a; git init -q .; git add -A; git commit -qm one',
    )
    const snapshots = await run(`echo edit >> src/a; echo new > src/new; ${command}`, 'disable_git_commits: true')
    expect(types(snapshots)).toEqual(isGuarded ? ['guard'] : [])
    if (isGuarded) expect(savepoint.read(snapshots[0]!.id, 'src/a').toString()).toBe('a1\nedit\n')
  })

  it('git rebase --abort in a rebase', async () => {
    space.sh(
      'git init -q .; git add -A; git commit -qm one; git branch other; echo 2 > src/a; git commit -qam two; git checkout -q other; echo 3 > src/a; git commit -qam three',
    )
    const script = 'git rebase -q master >/dev/null 2>&1 || git rebase -q main >/dev/null 2>&1; echo precious > src/new'
    const snapshots = await run(`${script}; sleep 2.1; git rebase --abort`)
    expect(snapshots.at(-1)).toMatchObject({ type: 'guard', command: 'git rebase --abort' })
  })

  it('a repository around the target: what is done elsewhere in it reaches the target', async () => {
    space.sh('cd ..; mkdir side; echo x > side/f; git init -q .; git add work side; git commit -qm one')
    const snapshots = await run('echo edit >> src/a; cd ../side; git reset -q --hard')
    expect(types(snapshots)).toEqual(['guard'])
  })

  it('one that could not be taken is marked', async () => {
    const release = onFailpoint('capture:before-commit', () => {
      if (existsSync(space.at('src/new'))) throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
    })
    try {
      await run('echo x > src/new; rm -rf src')
    } finally {
      release()
    }
    expect(noteOf('rm -rf')).toMatch(/^not guarded: Cannot capture: /)
  })

  it('not when nothing changed since the last snapshot: it can bring everything back', async () => {
    expect(await run('rm -rf src')).toEqual([])
    await savepoint.undo()
    expect(space.read('src/a')).toBe('a1\n')
  })

  it.each([
    ['that a script removes', 'mkdir -p conftest.d; rm -rf conftest*'],
    ['that a script removes elsewhere, by names that only xargs gets', 'echo > ../other; echo ../other | xargs rm -f'],
  ])('T10 hundreds of temporary files %s: few snapshots', async (_, removal) => {
    const started = performance.now()
    const { length } = await run(`i=0; while [ $i -lt 300 ]; do echo $i > conftest.c; ${removal}; i=$((i+1)); done`)
    // One in two seconds, so that a machine that is busy with something else gives more.
    const seconds = (performance.now() - started) / 1000
    expect(length).toBeLessThanOrEqual(Math.max(5, seconds / 2 + 1))
  })

  it('what is destroyed from a directory whose path is too long to be told', async () => {
    space.write(
      'deep.py',
      `import os, subprocess
part = 'd' * 200
for _ in range(25):
    os.mkdir(part)
    os.chdir(part)
os.mkdir('x')
open('x/new', 'w').write('new')
subprocess.run(['rm', '-rf', 'x'], check=True)
`,
    )
    try {
      expect(types(await run('python3 deep.py'))).toEqual(['guard'])
    } finally {
      space.sh(`rm -rf ${'d'.repeat(200)}`)
    }
  })

  it('waits for a capture that is still at work: what it has not reached is not safe', async () => {
    space.write('Makefile', 'all:\n\ttouch ../made\n')
    const isRemoving = () => savepoint.trace().executions.some(({ argv }) => argv[0] === 'rm')
    // The one after `make` has taken what is to be captured, and goes on when `rm` would have done its work.
    const release = onFailpoint('capture:walking', async () => {
      if (!existsSync(join(space.base, 'made'))) return
      await vi.waitUntil(isRemoving, { timeout: 60_000 })
      await pause(200)
    })
    try {
      space.sh('mkdir -p ../big/zz; echo p > ../big/zz/precious')
      await run('cp -r ../big big; make -s all; sleep 0.3; rm -rf big')
    } finally {
      release()
    }
    const build = onTheWay().find(({ type }) => type === 'build')!
    expect(hasPath(build.id, 'big/zz/precious')).toBe(true)
    expect(noteOf('rm -rf')).toBe(`guarded by ${build.id}`)
  })

  it('one every two seconds at most, but not ever fewer', async () => {
    await run('for i in 1 2 3 4; do [ $i = 1 ] || sleep 2.1; mkdir d$i; echo $i > d$i/f; rm -rf d$i; done')
    expect([1, 2, 3, 4].map(i => noteOf(`rm -rf d${i}`)?.slice(0, 7))).toEqual(Array(4).fill('guarded'))
  })

  it('what no snapshot brings back is marked', async () => {
    space.sh(
      'git init -q .; git add -A; git commit -qm one; git init -q --bare ../remote; git remote add origin ../remote',
    )
    await run('git push -q --force origin HEAD; true')
    expect(noteOf('git push')).toBe('irreversible')
  })

  it('what destroys in a database is held for a snapshot of the files around it', async () => {
    space.write('psql', '#!/bin/sh\nrm src/new\n')
    space.sh('chmod +x psql')
    await run('echo 1 > src/new; ./psql shop -c "drop table x"')
    const guard = onTheWay().find(({ type }) => type === 'guard')
    expect(savepoint.read(guard!.id, 'src/new').toString()).toBe('1\n')
    // It brings back those files, and not the table: the log must not look as if it did.
    expect(guard!.label).toBe('irreversible')
  })

  it('is not taken of a state that the last snapshot has, whatever is said of the command', async () => {
    space.write('psql', '#!/bin/sh\n')
    space.sh('chmod +x psql')
    expect(types(await run('chmod +x src/a; chmod -x src/a; ./psql shop -c "drop table x"'))).toEqual([])
  })

  it.each([
    ['from a file', './sqlite3 app.db < drop.sql', ['guard']],
    ['by a pipe', 'cat drop.sql | ./sqlite3 -batch app.db', ['guard']],
    ['not at all', './sqlite3 app.db < /dev/null', []],
    ['not at all, but a statement', './sqlite3 app.db "select 1" < drop.sql', []],
  ])('a client of a database that is fed %s', async (_, command, expected) => {
    space.write('sqlite3', '#!/bin/sh\n')
    space.write('app.db', '1')
    space.write('drop.sql', 'drop table x;\n')
    space.sh('chmod +x sqlite3')
    expect(types(await run(`echo 2 > app.db; ${command}`))).toEqual(expected)
    expect(noteOf('./sqlite3')).not.toBe('irreversible')
  })

  it('the command is not held for longer than allowed, and that is marked', async () => {
    // Somebody else has the timeline for a while.
    space.write('savepoint.yaml', 'snapshots: { triggers: { guard_max_hold_ms: 200, disable_idle: true } }\n')
    savepoint = await space.open()
    const lock = `${space.home}/timelines/${savepoint.timeline}/lock`
    // From outside of the run, which itself cannot touch the lock.
    const hold = `read line < take; exec flock '${lock}' sh -c 'echo > taken; read line < done'`
    space.sh('mkfifo take taken done', space.base)
    const holder = spawn('sh', ['-c', hold], { cwd: space.base, stdio: 'ignore' })
    const held = once(holder, 'exit')
    const script = 'echo x > src/new; echo > ../take; read line < ../taken; rm -rf src; echo > ../done; [ ! -e src ]'
    const started = performance.now()
    const { exitCode } = await savepoint.run({ command: ['sh', '-c', script] })
    await held
    expect([exitCode, performance.now() - started < 20_000]).toEqual([0, true])
    const guard = onTheWay().find(({ type }) => type === 'guard')
    expect(guard?.label).toBe('too late')
    expect(noteOf('rm -rf')).toBe(`went on before its snapshot was there; ${guard!.id} came too late for it`)
  })

  it('--allow-io-uring: what was made by it alone is there before it is destroyed, and that is said', async ctx => {
    const program = join(space.base, 'uring')
    compileC(program, uringWriter)
    ctx.skip(spawnSync(program, [join(space.base, 'try'), 'x']).status === 77, 'needs a kernel with io_uring')
    space.write('savepoint.yaml', settings(''))
    savepoint = await space.open()
    const command = ['sh', '-c', '../uring src/new precious && rm -rf src']
    expect((await savepoint.run({ command, tracer: 'seccomp', allowIoUring: true })).exitCode).toBe(0)
    const [guard] = onTheWay()
    expect(guard?.type).toBe('guard')
    expect(savepoint.read(guard!.id, 'src/new').toString()).toBe('precious')
    expect(space.notices.filter(text => text.includes('--allow-io-uring'))).toHaveLength(1)
  })

  it('disable_guard: nothing is held', async () => {
    expect(await run('echo x > src/new; rm -rf src', 'disable_guard: true')).toEqual([])
  })

  const hasMounts = spawnSync('unshare', ['-rm', 'true']).status === 0
  gated(hasMounts, 'unshare', 'among other mounts, where paths are others', async () => {
    const inside = 'mount --bind . /mnt && cd /mnt && rm -rf src'
    const snapshots = await run(`echo x > src/new; unshare -rm sh -c "${inside}"`)
    expect([types(snapshots), hasPath(snapshots[0]!.id, 'src/new')]).toEqual([['guard'], true])
  })

  gated(
    hasMounts,
    'unshare',
    'among other mounts, by a directory in memory that the target is mounted in',
    async () => {
      const inside = 'mount -t tmpfs t /mnt && mkdir /mnt/p && mount --bind . /mnt/p && rm -rf /mnt/* || true'
      const snapshots = await run(`echo x > src/new; unshare -rm sh -c "${inside}"`)
      expect([types(snapshots), hasPath(snapshots[0]!.id, 'src/new'), space.read('src/new')]).toEqual([
        ['guard'],
        true,
        undefined,
      ])
    },
  )

  gated(hasMounts, 'unshare', 'and not what lies in memory alone', async () => {
    const inside = 'mount -t tmpfs t /mnt && cd /mnt && echo a > a && echo b > b && mv a b && rm -rf /mnt/b'
    expect(types(await run(`echo x > src/new; unshare -rm sh -c "${inside}"`))).toEqual([])
  })

  it('is not too soon for one where the last would have shown nothing', async () => {
    space.write('wipe', '#!/bin/sh\n')
    space.sh('chmod +x wipe; chmod 644 src/a')
    const snapshots = await run('chmod 644 src/a; ./wipe; echo x > src/new; rm -rf src', 'guard_commands: ["./wipe"]')
    expect([types(snapshots), hasPath(snapshots[0]!.id, 'src/new')]).toEqual([['guard'], true])
  })

  it('guard_commands: those of the user, too', async () => {
    space.write('wipe', '#!/bin/sh\n: > src/a\n')
    space.sh('chmod +x wipe')
    const snapshots = await run('echo x > src/new; ./wipe all', 'guard_commands: ["wipe al*"]')
    expect(snapshots.map(({ type, command }) => [type, command])).toEqual([['guard', './wipe all']])
  })

  it.each([
    ['./wipe', './wipe', true],
    ['./wipe', 'cd src; ../wipe', true],
    ['./wipe', 'sh ./wipe', true],
    ['tools/wipe', 'cd tools; ./wipe', true],
    ['tools/wipe', 'PATH="$PWD/tools:$PATH"; wipe', true],
    ['tools/wipe', './wipe', false],
    ['*/wipe', 'tools/wipe', true],
    ['src/link', 'src/link', true],
    ['src/link', 'cd src; ./link', true],
    ['wipe', 'cd /; "$OLDPWD/wipe"', true],
  ])('guard_commands: %s is that file, whoever calls it as %s', async (pattern, call, isMeant) => {
    space.sh('mkdir tools; ln -s ../wipe src/link')
    for (const path of ['wipe', 'tools/wipe']) {
      space.write(path, '#!/bin/sh\n:\n')
      space.sh(`chmod +x ${path}`)
    }
    const snapshots = await run(`echo x > src/new; ${call}`, `guard_commands: ["${pattern}"]`)
    expect(types(snapshots)).toEqual(isMeant ? ['guard'] : [])
  })

  gated(canDropPrivilege, 'setpriv', 'the same for an ordinary user', async () => {
    const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', 'echo 1 > src/new; rm -rf src'] }]])
    expect(error).toBeUndefined()
    savepoint = await space.open()
    expect(types(onTheWay())).toEqual(['guard'])
  })
})

describe('milestones', () => {
  it('a commit that succeeded, two seconds after the last of them', async () => {
    space.sh('git init -q .')
    const snapshots = await runInSteps(settings(''), [
      ['git add -A; git commit -qm one; echo 2 > src/a; git commit -qam two', 1],
      ['git commit -qm none', 1],
    ])
    expect(snapshots.map(({ type, command }) => [type, command])).toEqual([['git', 'git commit -qam two']])
    expect(await run('echo 3 > src/a; git commit -qam three; sleep 3', 'disable_git_commits: true')).toEqual(snapshots)
  })

  it('a commit whose state another snapshot has by then: once each, and none for one that failed', async () => {
    space.sh('git init -q .; git add -A; git commit -qm zero')
    const commits = () => onTheWay().filter(({ type }) => type === 'git')
    const snapshots = await runInSteps(settings('enable_change: true'), [
      ['echo 2 > src/a; git commit -qam one', () => commits().length === 1],
      ['git commit -qm none; echo 3 > src/a; git commit -qam two', () => commits().length === 2],
      ['echo 4 > src/a', () => onTheWay().at(-1)!.type === 'change'],
    ])
    expect(commits().map(({ command }) => command)).toEqual(['git commit -qam one', 'git commit -qam two'])
    expect(types(snapshots).filter((type, i, all) => type !== all[i - 1])).toEqual([
      'change',
      'git',
      'change',
      'git',
      'change',
    ])
    const before = snapshots[snapshots.findIndex(({ type }) => type === 'git') - 1]!
    expect(commits()[0]!.root).toBe(before.root)
  })

  it.each([
    ['', ['pre-run', 'git', 'final']],
    ['disable_pre_run: true', ['git']],
  ])('one that the run ends with is not waited for, but captured: %s', async (triggers, expected) => {
    space.sh('git init -q .')
    await run('git add -A; git commit -qm one', triggers)
    const snapshots = savepoint.snapshots()
    expect(types(snapshots)).toEqual(expected)
    expect(snapshots.find(({ type }) => type === 'git')).toMatchObject({
      command: 'git commit -qm one',
      run: expect.any(String),
    })
    expect(savepoint.runs()[0]!.after).toBe(snapshots.find(({ type }) => type === 'final')?.id)
  })

  it('a commit elsewhere is none, whatever changes here; one through a work tree elsewhere is', async () => {
    space.sh(
      'git init -q . && git add -A && git commit -qm zero && git worktree add -q ../tree && git init -q ../other',
    )
    await run('echo 1 > src/a; cd ../other; echo 1 > x; git add x; git commit -qm one')
    expect(types(savepoint.snapshots())).toEqual(['pre-run', 'final'])
    await run('cd ..; echo 1 > tree/x; git -C tree add x; git -C tree -c alias.ci=commit ci -qm two')
    expect(types(savepoint.snapshots())).toEqual(['pre-run', 'final', 'pre-run', 'git', 'final'])
  })

  it('builds and tests, with how they ended', async () => {
    space.write('Makefile', 'build:\n\techo 1 > out\ntest:\n\techo 2 > out; false\ncheck:\n\techo 3 > out\n')
    const snapshots = await runInSteps(settings(''), [
      ['make build', 1],
      ['make test', 2],
      ['make check', 3],
    ])
    expect(snapshots.map(({ type, command, label }) => [type, command, label])).toEqual([
      ['build', 'make build', 'built'],
      ['test', 'make test', 'failed (exit 2)'],
      ['test', 'make check', 'passed'],
    ])
    const off = 'echo 9 > out; make build; sleep 0.3; echo 8 > out; make test; sleep 0.3'
    const same = await run(`${off}; true`, 'disable_builds: true\n    disable_tests: true')
    expect(same.length).toBe(snapshots.length)
  })

  it('how a test ended is worth a snapshot of the same state, once', async () => {
    space.write('Makefile', 'test:\n\ttest -e ../good\n')
    const snapshots = await runInSteps(settings(''), [
      ['make test', 1],
      ['make test; make test; sleep 0.5', 1],
      ['touch ../good; make test', 2],
    ])
    expect(snapshots.map(({ label, sizeDelta }) => [label, sizeDelta])).toEqual([
      ['failed (exit 2)', 0],
      ['passed', 0],
    ])
    expect(new Set(snapshots.map(({ root }) => root)).size).toBe(1)
  })

  it('those that end while a capture is at work: the next ones say how the last of each kind ended', async () => {
    space.write('Makefile', 'build all check:\n\techo $@ > out\ntest:\n\tfalse\n')
    // Somebody else has the timeline meanwhile, so that the first capture waits.
    space.sh('mkfifo take taken done', space.base)
    savepoint = await space.open()
    const lock = `${space.home}/timelines/${savepoint.timeline}/lock`
    const hold = `read line < take; exec flock '${lock}' sh -c 'echo > taken; read line < done'`
    const holder = spawn('sh', ['-c', hold], { cwd: space.base, stdio: 'ignore' })
    const held = once(holder, 'exit')
    const script = 'make build; make test; make check; make all'
    const told = (): string[] => onTheWay().map(({ command, label }) => `${command}: ${label}`)
    await runInSteps(settings(''), [
      [
        `echo > ../take; read line < ../taken; ${script}; echo > ../done`,
        () => told().includes('make check: passed') && told().includes('make all: built'),
      ],
    ])
    await held
    // Those before are there only if their capture began in time.
    expect(told().slice(-2)).toEqual(['make check: passed', 'make all: built'])
  })

  it('build_commands and test_commands: those of the user, too', async () => {
    space.write('tool', '#!/bin/sh\necho $1 > out\n')
    space.sh('chmod +x tool')
    const keys = 'build_commands: ["tool assemble"]\n    test_commands: ["tool verify"]'
    const snapshots = await runInSteps(settings(keys), [
      ['./tool assemble', 1],
      ['./tool verify', 2],
      ['./tool other; sleep 0.5', 2],
    ])
    expect(snapshots.map(({ type, label }) => [type, label])).toEqual([
      ['build', 'built'],
      ['test', 'passed'],
    ])
  })
})

describe('by the clock', () => {
  it('idle: once when it rests, again after it has worked', async () => {
    const snapshots = await runInSteps('snapshots: { triggers: { idle_threshold_seconds: 1 } }\n', [
      ['echo 1 > src/a', 1],
      // Once: it rests again, and has changed nothing. Then it does, without a command of its own.
      ['sleep 2', 1],
      ['echo 2 > src/a', 2],
    ])
    expect(types(snapshots)).toEqual(['idle', 'idle'])
  })

  it('interval: when something changed', async () => {
    const config = 'snapshots: { auto_interval_seconds: 1, triggers: { disable_idle: true } }\n'
    const snapshots = await runInSteps(config, [
      ['echo 1 > src/a', 1],
      // Twice the interval, and nothing has changed.
      ['sleep 2', 1],
    ])
    expect(types(snapshots)).toEqual(['interval'])
  })

  it('the pool of interval and change keeps auto_max of them; those beyond can be brought back', async () => {
    const isCaptured = (i: number) => {
      const newest = onTheWay().at(-1)
      return newest !== undefined && savepoint.read(newest.id, 'src/a').toString() === `${i}\n`
    }
    const snapshots = await runInSteps(
      'snapshots: { retention: { auto_max: 2 }, triggers: { enable_change: true, disable_idle: true } }\n',
      [1, 2, 3, 4, 5].map(i => [`echo ${i} > src/a`, () => isCaptured(i)]),
    )
    const contents = snapshots.map(({ id }) => savepoint.read(id, 'src/a').toString())
    expect([types(snapshots), contents]).toEqual([
      ['change', 'change'],
      ['4\n', '5\n'],
    ])
    const thinned = savepoint.operations().filter(({ kind }) => kind === 'retention')
    expect(thinned).toMatchObject([1, 2, 3].map(() => ({ state: 'fixed', rule: expect.stringContaining('auto_max') })))
    await savepoint.undo()
    expect(space.read('src/a')).toBe('a1\n')
  })

  it('change: soon after each, when asked for', async () => {
    const snapshots = await runInSteps(settings('enable_change: true'), [
      ['echo 1 > src/a; echo 2 > src/b', 1],
      ['echo 3 > src/a', 2],
    ])
    expect(types(snapshots)).toEqual(['change', 'change'])
  })
})

it('undo takes back the whole run, whatever was kept on the way', async () => {
  await run('echo 2 > src/a; rm -rf src; mkdir src; echo 3 > src/c')
  await savepoint.undo()
  expect([space.read('src/a'), space.read('src/c')]).toEqual(['a1\n', undefined])
  await savepoint.redo()
  expect([space.read('src/a'), space.read('src/c')]).toEqual([undefined, '3\n'])
})
