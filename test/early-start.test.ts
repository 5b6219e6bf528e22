/** In a large tree the command begins before its state is captured. The snapshot is that state all the same. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { builtCommand } from './support/built-cli.ts'
import { runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
/** The tree as each test begins with it. */
let untouched: Workspace
beforeAll(() => {
  untouched = new Workspace()
  execFileSync('python3', ['-c', makeTree, untouched.dir])
})
afterAll(() => untouched.remove())
beforeEach(() => {
  space = new Workspace()
  execFileSync('python3', ['-c', makeTree, space.dir])
})
afterEach(() => {
  release()
  child?.kill('SIGKILL')
  space.remove()
})
/** The root, then batches of directories, each larger than the one before: enough to know that the tree is large, and not all of it. */
const WALKED_BATCHES = 6
let release = () => {}
let child: ChildProcess | undefined

const makeTree = `
import os, sys
os.chdir(sys.argv[1])
for i in range(200):
    os.makedirs(f"d{i}/sub")
    for j in range(30):
        with open(f"d{i}/f{j}", "w") as f: f.write(f"{i} {j} " * 50)
    with open(f"d{i}/sub/x", "w") as f: f.write(str(i))
os.link("d0/f0", "d199/linked")
os.symlink("d0", "link")
with open(".gitignore", "w") as f: f.write("ignored/\\n")
os.mkdir("ignored")
`

/** Everything that a run may do to a tree, from its first moment on. */
const destroy = `
import os, shutil, random
r = random.Random(7)
dirs = [f"d{i}" for i in range(200)]
r.shuffle(dirs)
with open("d199/linked", "a") as f: f.write("through another name")
for n, d in enumerate(dirs[:120]):
    k = n % 8
    if k == 0: os.rename(d, d + "-moved")
    elif k == 1: os.unlink(d + "/f1")
    elif k == 2: open(d + "/f2", "w").write("other")
    elif k == 3: os.truncate(d + "/f3", 3)
    elif k == 4: os.rename(d + "/f4", d + "/f5")
    elif k == 5: os.unlink(d + "/sub/x"); os.rmdir(d + "/sub")
    elif k == 6: os.chmod(d + "/f6", 0o600); os.mkdir(d + "/new"); open(d + "/new/y", "w").write("y")
    elif k == 7: os.symlink("x", d + "/sym"); open("ignored/" + d, "w").write("i")
`

const list = "find . ! -path './ignored/*' -printf '%P %y %m %l\\n' | sort"

/** How a snapshot differs from a directory, by reading every byte. */
async function differences(snapshot: string, directory: string): Promise<string> {
  const copy = join(space.base, 'copy')
  await savepoint.rollback(snapshot, { to: copy })
  return space.sh(
    `mkdir -p '${copy}/ignored'; diff -r --no-dereference . '${copy}' || true
     (${list}) > ../a; (cd '${copy}' && ${list}) > ../b; diff ../a ../b || true`,
    directory,
  )
}

/**
 * Holds captures in the middle of the walk, when it has seen that the tree is large, until `done` is called; a command
 * that is started meanwhile begins before its state is captured, however fast the machine is.
 */
function holdCapture(): { done: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let batches = 0
  release = onFailpoint('capture:walking', () => (++batches >= WALKED_BATCHES ? promise : undefined))
  return { done: resolve }
}
/** The same for another process: until `file` exists. */
const holdUntil = (file: string, more = '') => ({
  ...space.env,
  SAVEPOINT_FAILPOINT: `capture:walking#${WALKED_BATCHES}~${file}${more}`,
})

describe.each(['held until its end', 'at the same time'])('the capture and the command: %s', how => {
  it('the snapshot before is the state before, whatever is done meanwhile; undo brings it back', async () => {
    savepoint = await space.open()
    const held = how === 'at the same time' ? undefined : holdCapture()
    const command = ['python3', '-c', `${destroy}\nopen("../done", "w").close()`]
    let isEarly: boolean | undefined
    const running = savepoint.run({
      command,
      onStart: (_run, _before, isPending) => {
        isEarly = isPending
      },
    })
    if (held) {
      await vi.waitUntil(() => existsSync(join(space.base, 'done')), { timeout: 60_000 })
      expect(isEarly).toBe(true)
      held.done()
    }
    const result = await running
    expect(result.exitCode).toBe(0)
    expect(result.before).toMatchObject({ type: 'pre-run', unsettled: false })
    expect(await differences(result.before!.id, untouched.dir)).toBe('')
    await savepoint.undo()
    expect(space.sh(`diff -r --no-dereference -x ignored . '${untouched.dir}'`)).toBe('')
  }, 120_000)
})

describe('a command that destroys while the state before is being captured', () => {
  /** Runs it with the capture held until `isDue`. */
  async function destroying(script: string, holdMs: number, isDue: () => boolean) {
    const triggers = `{ disable_idle: true, disable_git_commits: true, guard_max_hold_ms: ${holdMs} }`
    space.write('savepoint.yaml', `snapshots: { triggers: ${triggers} }\n`)
    savepoint = await space.open()
    const held = holdCapture()
    const running = savepoint.run({ command: ['sh', '-c', `exec >/dev/null 2>&1\n${script}`] })
    try {
      await vi.waitUntil(isDue, { timeout: 30_000 })
    } finally {
      held.done()
      expect((await running).exitCode).toBe(0)
    }
    return savepoint.snapshots()
  }
  const executions = () => savepoint.trace().executions.filter(({ argv }) => argv[0] !== 'sh')
  const isBegun = (program: string) => () => savepoint.runs().length > 0 && executions().some(is(program))
  const is =
    (program: string) =>
    ({ argv }: { argv: string[] }) =>
      argv[0] === program
  const isThere = (file: string) => () => existsSync(join(space.base, file))
  const noteOf = (program: string) => executions().find(is(program))?.note

  it('does not wait for a guard, which would come after it: what goes is put aside, or kept', async () => {
    const script = `echo new > d5/new; ln -s new d5/link; ln d5/new d5/again; : > d5/empty
      sed -i s/./x/ d6/f1; sed -i s/./x/ d6/f2; rm -rf d5
      mkdir made; echo made > made/f; find made -delete; echo > ../done`
    const snapshots = await destroying(script, 60_000, isThere('done'))
    const notes = executions().map(({ note }) => note?.replace(/:.*/, ''))
    expect(notes).toEqual([undefined, undefined, 'not held', 'not held', 'not held', undefined, 'not held'])
    expect(snapshots.filter(({ type }) => type === 'guard')).toEqual([])
    const keptOf = async (path: string) => {
      const { versions } = await savepoint.history(path)
      return versions.find(({ snapshot }) => snapshot.type === 'kept')!.snapshot.id
    }
    for (const [path, content] of Object.entries({
      'd5/new': 'new\n',
      'd5/again': 'new\n',
      'd5/empty': '',
      'made/f': 'made\n',
    }))
      expect(savepoint.read(await keptOf(path), path).toString()).toBe(content)
    await savepoint.revert('d5/link', { from: await keptOf('d5/link') })
    expect(readlinkSync(space.at('d5/link'))).toBe('new')
    await savepoint.undo()
    await savepoint.undo()
    expect(space.sh(`diff -r --no-dereference -x ignored -x savepoint.yaml . '${untouched.dir}'`)).toBe('')
  }, 120_000)

  it.each([
    ['what it has made would be overwritten in place', 'echo new > d5/new; shred d5/new', 'shred', 'd5/new'],
    [
      'what it has stored in the repository is not kept',
      'git commit -q --allow-empty -m x; rm -rf .git',
      'rm',
      '.git/refs/heads/main',
    ],
  ])(
    'waits where %s',
    async (_, script, program, path) => {
      space.sh('git init -q -b main .')
      const [first, guard] = await destroying(script, 60_000, isBegun(program))
      expect([first?.type, guard?.type]).toEqual(['pre-run', 'guard'])
      expect(savepoint.read(guard!.id, path).length).toBeGreaterThan(0)
      expect(noteOf(program)).toBe(`guarded by ${guard!.id}`)
      expect(guard!.label).toBeUndefined()
    },
    120_000,
  )

  it('and leaves a process behind, which waits with what it changes until that is captured, and goes on', async () => {
    const script = '(echo late > d5/late; echo > ../survived) & echo > ../ended; exit 0'
    const [first] = await destroying(script, 60_000, isThere('ended'))
    await vi.waitUntil(isThere('survived'), { timeout: 60_000 })
    expect([space.read('d5/late'), first!.type]).toEqual(['late\n', 'pre-run'])
    expect(() => savepoint.read(first!.id, 'd5/late')).toThrow(/is not there/)
  }, 120_000)

  it('waits for the state before where others destroy it', async () => {
    space.write('psql', '#!/bin/sh\n')
    space.sh('chmod +x psql')
    const [first] = await destroying('./psql -c "drop table x"', 60_000, isBegun('./psql'))
    expect(noteOf('./psql')).toBe(`irreversible; guarded by ${first!.id}`)
  }, 120_000)

  it('a guard that came after its command says so', async () => {
    const script = 'echo new > d5/new; shred d5/new; echo > ../done'
    const [, guard] = await destroying(script, 200, isThere('done'))
    expect(guard).toMatchObject({ type: 'guard', label: 'too late', command: 'shred d5/new' })
    expect(noteOf('shred')).toBe(`went on before its snapshot was there; ${guard!.id} came too late for it`)
  }, 120_000)
})

it('a directory that is closed at once hides nothing; what the run alone changes leaves the snapshot settled', async () => {
  const { error } = await runAsUser(space, [
    ['run', { command: ['sh', '-c', 'chmod 000 d7 d8; sleep 1; chmod 755 d7 d8; rm -r d7; echo 1 > d9/sub/new'] }],
  ])
  expect(error).toBeUndefined()
  savepoint = await space.open()
  const [first] = savepoint.snapshots()
  expect(first).toMatchObject({ type: 'pre-run', skippedCount: 0, unsettled: false })
  await savepoint.undo()
  expect(space.read('d7/sub/x')).toBe('7')
}, 120_000)

it('a file that the command was given to write is captured before it begins', async () => {
  space.write('log', 'before\n')
  spawnSync(
    'sh',
    ['-c', `"$@" >> log`, 'sh', ...builtCommand, 'run', '-q', '--', 'sh', '-c', 'echo after; echo x > d1/f1'],
    {
      cwd: space.dir,
      env: space.env,
    },
  )
  savepoint = await space.open()
  const [first] = savepoint.snapshots()
  expect(savepoint.read(first!.id, 'log').toString()).toBe('before\n')
  expect(space.read('log')).toBe('before\nafter\n')
}, 120_000)

it('where no command comes to begin, nothing waits for that', async () => {
  savepoint = await space.open()
  await expect(savepoint.run({ command: ['/no/such/program'] })).rejects.toMatchObject({ code: 'command.not-found' })
  expect((await savepoint.snapshot()).files).toBeGreaterThan(6000)
}, 120_000)

it('what somebody else changes meanwhile is said', async () => {
  savepoint = await space.open()
  const held = holdCapture()
  const result = await savepoint.run({
    command: ['sh', '-c', 'echo x > d1/f1'],
    onStart: () => {
      for (let i = 0; i < 200; i++) space.write(`d${i}/by-hand`)
      held.done()
    },
  })
  expect(result.before?.unsettled).toBe(true)
}, 120_000)

it('when it fails, the command is stopped before it changes what is not safe; --unprotected lets it go on', () => {
  const begun = join(space.base, 'begun')
  const script = `echo > '${begun}'; echo x > .gitignore; echo done > done`
  const run = (...flags: string[]) =>
    spawnSync(builtCommand[0]!, [...builtCommand.slice(1), 'run', ...flags, '--', 'sh', '-c', script], {
      cwd: space.dir,
      env: holdUntil(begun, ',capture:before-root@ENOSPC'),
      encoding: 'utf8',
    })
  const { status, stderr } = run()
  expect([status, stderr]).toEqual([
    125,
    expect.stringContaining('The command was stopped: the snapshot before it failed'),
  ])
  expect([space.read('.gitignore'), space.read('done')]).toEqual(['ignored/\n', undefined])
  expect(run('--unprotected').status).toBe(0)
  expect(space.read('done')).toBe('done\n')
}, 120_000)

it('as many threads wait as there are', () => {
  const script = `
import threading, time
begun = []
def change(i):
    begun.append(i)
    with open(f"d{i // 10}/f{i % 10}", "w") as f: f.write("over")
threading.stack_size(128 * 1024)
for i in range(1700): threading.Thread(target=change, args=(i,)).start()
while len(begun) < 1700: time.sleep(0.01)
open("../go", "w").close()`
  const cli = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    spawnSync(builtCommand[0]!, [...builtCommand.slice(1), ...args], { cwd: space.dir, env, encoding: 'utf8' })
  expect(cli(holdUntil(join(space.base, 'go')), 'run', '-q', '--', 'python3', '-c', script).status).toBe(0)
  expect(space.read('d169/f9')).toBe('over')
  expect(cli(space.env, 'undo').status).toBe(0)
  for (let i = 0; i < 1700; i++) {
    const path = `d${Math.floor(i / 10)}/f${i % 10}`
    if (space.read(path) !== untouched.read(path)) expect.fail(`${path} is not as it was`)
  }
}, 120_000)

it.each([
  ['', 'to take back what it did until it was stopped: savepoint undo'],
  [',capture:before-commit@ENOSPC', 'what it did until it was stopped is kept'],
])(
  'when it fails, what was changed until then can be taken back (more failures: "%s")',
  (more, said) => {
    const begun = join(space.base, 'begun')
    const script = `rm d1/f1; mv d2 moved; echo > '${begun}'; echo x > .gitignore`
    const cli = (env: NodeJS.ProcessEnv, ...args: string[]) =>
      spawnSync(builtCommand[0]!, [...builtCommand.slice(1), ...args], { cwd: space.dir, env, encoding: 'utf8' })
    const run = cli(holdUntil(begun, `,capture:before-root@ENOSPC${more}`), 'run', '--', 'sh', '-c', script)
    expect([run.status, run.stderr]).toEqual([125, expect.stringContaining(said)])
    expect([space.read('d1/f1'), space.read('d2/f1')]).toEqual([undefined, undefined])
    expect(cli(space.env, 'undo').status).toBe(0)
    expect([space.read('d1/f1'), space.read('d2/f1'), space.read('moved/f1')]).toEqual([
      untouched.read('d1/f1'),
      untouched.read('d2/f1'),
      undefined,
    ])
  },
  120_000,
)

it('when we are killed meanwhile, so is the command: what it wants to change is not safe', async () => {
  space.sh('git init -q .')
  space.write('.git/hooks/own', 'of the user\n')
  space.write('d1/empty', '')
  // The changes go on while the capture waits; that of .gitignore waits for all of it.
  const script = `echo $$ > ../pid; for i in 1 2 3 4 5 6 7 8 9; do rm -f d$i/f1; done; rm .git/hooks/own d1/empty; echo > ../changed
    echo x > .gitignore; echo end > ../end`
  child = spawn(builtCommand[0]!, [...builtCommand.slice(1), 'run', '-q', '--', 'sh', '-c', script], {
    cwd: space.dir,
    env: holdUntil(join(space.base, 'never')),
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  await vi.waitUntil(() => existsSync(join(space.base, 'changed')), { timeout: 60_000 })
  child.kill('SIGKILL')
  await ended
  const pid = readFileSync(join(space.base, 'pid'), 'utf8').trim()
  await vi.waitUntil(() => !existsSync(`/proc/${pid}`), { timeout: 60_000 })
  expect([existsSync(join(space.base, 'end')), space.read('.gitignore')]).toEqual([false, 'ignored/\n'])
  // The capture that had what is gone went with us (test/killed-at-start.test.ts has the rest of it).
  const undo = spawnSync(builtCommand[0]!, [...builtCommand.slice(1), 'undo'], { cwd: space.dir, env: space.env })
  expect(undo.status).toBe(0)
  expect(['d1/f1', 'd9/f1', '.git/hooks/own', 'd1/empty'].map(path => space.read(path))).toEqual([
    untouched.read('d1/f1'),
    untouched.read('d9/f1'),
    'of the user\n',
    '',
  ])
}, 120_000)

it('when the helper is killed meanwhile, what waits is not let go: nobody has what it would destroy', async () => {
  const script = `echo $$ > ../pid; echo $PPID > ../helper; rm d1/f1; echo > ../changed
    echo x > .gitignore; for i in 2 3 4 5 6 7 8 9; do echo > d$i/f1; done; echo end > ../end`
  child = spawn(builtCommand[0]!, [...builtCommand.slice(1), 'run', '--', 'sh', '-c', script], {
    cwd: space.dir,
    env: holdUntil(join(space.base, 'go')),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    said += text
  })
  const ended = once(child, 'close')
  await vi.waitUntil(() => existsSync(join(space.base, 'changed')), { timeout: 60_000 })
  process.kill(Number(readFileSync(join(space.base, 'helper'), 'utf8')), 'SIGKILL')
  // While the capture waits, we do not: it is the guard that stops it.
  const status = `/proc/${readFileSync(join(space.base, 'pid'), 'utf8').trim()}/status`
  const isOver = () => !existsSync(status) || /^State:\s+Z/m.test(readFileSync(status, 'utf8'))
  await vi.waitUntil(isOver, { timeout: 60_000 })
  space.write('../go', '')
  await ended
  expect(said).toContain('the tracer was killed before all was captured: the command is stopped')
  expect([existsSync(join(space.base, 'end')), space.read('.gitignore')]).toEqual([false, 'ignored/\n'])
  const undo = spawnSync(builtCommand[0]!, [...builtCommand.slice(1), 'undo'], { cwd: space.dir, env: space.env })
  expect(undo.status).toBe(0)
  for (const i of [1, 2, 9]) expect(space.read(`d${i}/f1`)).toBe(untouched.read(`d${i}/f1`))
}, 120_000)
