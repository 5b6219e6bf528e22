/** Runs that are not traced: changes are watched, by fanotify as root and by inotify as anybody, and snapshots follow them. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunResult, Savepoint } from '../src/index.ts'
import { compileC } from './support/c-program.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { canMount, gated, isRoot } from './support/machine.ts'
import { inSteps } from './support/steps.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
const setUp = async (name?: string) => {
  space = new Workspace(name)
  space.write('savepoint.yaml', 'snapshots: { triggers: { disable_idle: true } }\n')
  space.write('a', 'a1\n')
}
beforeEach(() => setUp())
afterEach(() => space.remove())

type Way = (script: string) => Promise<RunResult['trace']>
const asRoot: Way = async script => {
  savepoint = await space.open()
  const { exitCode, trace } = await savepoint.run({ command: ['sh', '-c', script], tracer: 'none' })
  expect(exitCode).toBe(0)
  return trace
}
const asUser: Way = async script => {
  const { error, results } = await runAsUser(space, [['run', { command: ['sh', '-c', script], tracer: 'none' }]])
  expect(error).toBeUndefined()
  savepoint = await space.open()
  return results[0].trace
}
const ops = (path: string): string[] => savepoint.why(path).causes.map(({ event }) => event.op)

const ways: [name: string, way: Way, works: boolean][] = [
  ['fanotify', asRoot, isRoot],
  ['inotify', asUser, canDropPrivilege],
]

/** [script, path → an operation that must be told of it; none: it must not be told at all]. */
const changes: [script: string, told: Record<string, string | undefined>][] = [
  ['echo 2 > a', { a: 'changed' }],
  ['echo 2 > new', { new: 'create' }],
  ['chmod 600 a', { a: 'attributes' }],
  ['rm a', { a: 'delete' }],
  ['mv a b', { a: 'rename', b: 'rename' }],
  ['mv a ../out; mv ../out back', { back: 'create' }],
  ['mkdir -p x/y/z; echo 1 > x/y/z/f', { 'x/y/z/f': 'c' }],
  ['mkdir d; mv d e; sleep 0.1; echo 1 > e/f', { 'e/f': 'c' }],
  ['mkdir -p d/s; sleep 0.1; mv d e; mv e g; sleep 0.1; echo 1 > g/s/f', { 'g/s/f': 'c' }],
  [
    'mkdir -p d/s; sleep 0.1; mv d ..; echo 1 > ../d/s/f; sleep 0.1; mv ../d here; echo 2 > here/s/g',
    { 'here/s/g': 'c', 'd/s/f': undefined },
  ],
  ['mkdir -p d/s; sleep 0.1; rm -r d; mkdir -p d/s; echo 1 > d/s/f', { 'd/s/f': 'c' }],
  ['mkdir d; chmod 000 d; sleep 0.1; chmod 755 d; sleep 0.1; echo 1 > d/f', { 'd/f': 'c' }],
  ['echo 1 > link/f; echo 2 > ../elsewhere/g', { 'link/f': undefined, 'elsewhere/g': undefined }],
  ['echo 1 > ignored/f; echo 2 > ignored/deep/g', { 'ignored/f': undefined, 'ignored/deep/g': undefined }],
  ['echo 1 > "$(printf \'n\\377\')"', { 'n\udcff': 'c' }],
  ['cat a > ../read; ls . >> ../read', { a: undefined }],
]

describe.each(ways)('%s', (_, way, works) => {
  for (const [script, told] of changes) {
    gated(works, 'the rights', script, async () => {
      space.write('.gitignore', 'ignored\n')
      space.write('ignored/deep/x')
      mkdirSync(join(space.base, 'elsewhere'))
      symlinkSync('../elsewhere', space.at('link'))
      await way(`${script} >/dev/null; sleep 0.1`)
      for (const [path, op] of Object.entries(told)) {
        if (op === undefined) expect(ops(path).filter(each => each !== 'delete' && each !== 'rename')).toEqual([])
        else expect(ops(path).join()).toMatch(op)
      }
    })
  }

  gated(works, 'the rights', 'a target whose name has odd bytes', async () => {
    space.remove()
    space = new Workspace('w %41 \t"ü')
    space.write('a', 'a1\n')
    await way('echo 2 > a; sleep 0.1')
    expect(ops('a')).toContain('changed')
  })

  gated(works, 'the rights', 'a target that is deleted, and another in its place', async () => {
    await way('cd ..; rm -r work; mkdir work; echo 2 > work/new; echo 3 > work/a')
    expect(space.read('a')).toBe('3\n')
    const { restore } = await savepoint.undo()
    expect([restore?.files, space.read('a'), space.read('new')]).toEqual([expect.anything(), 'a1\n', undefined])
  })

  gated(works && canMount, 'the rights, and to mount', 'another filesystem in the target', async () => {
    mkdirSync(space.at('mnt'))
    space.sh('mount -t tmpfs -o size=1m none mnt')
    try {
      await way('echo 1 > mnt/f; echo 2 > a; sleep 0.1')
      expect([ops('mnt/f'), ops('a')[0]]).toEqual([[], 'changed'])
    } finally {
      space.sh('umount mnt')
    }
  })

  gated(works, 'the rights', 'snapshots on the way: change, interval and idle', async () => {
    const types = () =>
      savepoint.snapshots().flatMap(({ type }) => (type === 'pre-run' || type === 'final' ? [] : type))
    const runInSteps = async (config: string, steps: [script: string, snapshots: number][]) => {
      space.write('savepoint.yaml', config)
      savepoint = await space.open()
      await inSteps(
        space,
        steps.map(([script, awaited]) => [script, () => types().length >= awaited]),
        way,
      )
    }
    await runInSteps(
      'snapshots: { auto_interval_seconds: 600, triggers: { enable_change: true, disable_idle: true } }\n',
      [
        ['echo 2 > a', 1],
        ['echo 3 > a', 2],
      ],
    )
    expect(types()).toEqual(['change', 'change'])
    await runInSteps('snapshots: { triggers: { idle_threshold_seconds: 1 } }\n', [
      ['echo 4 > a', 3],
      ['echo 5 > a', 4],
    ])
    expect(types()).toEqual(['change', 'change', 'idle', 'idle'])
    await runInSteps('snapshots: { auto_interval_seconds: 1, triggers: { disable_idle: true } }\n', [
      ['echo 6 > a', 5],
      ['sleep 2', 5],
    ])
    expect(types()).toEqual(['change', 'change', 'idle', 'idle', 'interval'])
  })

  gated(works, 'the rights', 'T1 more changes than the system keeps: said, and everything is looked at', async () => {
    space.write('savepoint.yaml', 'snapshots: { auto_interval_seconds: 1, triggers: { disable_idle: true } }\n')
    space.write('many.py', 'for i in range(20000):\n  open("d/%d" % i, "w").close()\n')
    mkdirSync(space.at('d'))
    savepoint = await space.open()
    const isLookedAt = () =>
      savepoint.snapshots().some(({ type, counts }) => type === 'interval' && counts.added === 20_000)
    // Our reader sleeps while it happens.
    const overflow = 'kill -STOP $PPID; python3 many.py; kill -CONT $PPID'
    const trace = await inSteps(space, [[overflow, isLookedAt]], way)
    expect(trace?.lost).toBeGreaterThan(0)
    expect(isLookedAt()).toBe(true)
  })
})

const canLimit =
  spawnSync('unshare', ['-U', '-r', 'sh', '-c', 'echo 9 > /proc/sys/user/max_inotify_watches']).status === 0
gated(canLimit, 'user namespaces', 'the limit of watches: said, and everything is looked at instead', async () => {
  for (let i = 0; i < 20; i++) space.write(`d${i}/f`)
  space.write('savepoint.yaml', 'snapshots: { auto_interval_seconds: 1, triggers: { disable_idle: true } }\n')
  savepoint = await space.open()
  const seen = () => {
    const last = savepoint.snapshots().findLast(({ type }) => type === 'interval')
    const contents = space
      .sh('ls -d d*/f')
      .trim()
      .split('\n')
      .map(path => last && savepoint.read(last.id, path).toString())
    return contents.filter(content => content === '2\n').length
  }
  const limited = 'echo 5 > /proc/sys/user/max_inotify_watches; exec "$@"'
  const run = async (script: string) => {
    const words = [...cliCommand, 'run', '--tracer', 'none', '--', 'sh', '-c', script]
    const child = spawn('unshare', ['-U', '-r', 'sh', '-c', limited, 'sh', ...words], {
      cwd: space.dir,
      env: space.env,
    })
    const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'close')])
    return { status, stderr }
  }
  const { status, stderr } = await inSteps(space, [['for d in d*; do echo 2 > $d/f; done', () => seen() === 20]], run)
  expect([status, stderr]).toEqual([0, expect.stringMatching(/not all directories could be watched/)])
  expect(seen()).toBe(20)
})

it('the store is not watched, wherever it lies', async () => {
  const home = space.at('.store')
  savepoint = await space.open({ home, env: { ...space.env, SAVEPOINT_HOME: home } })
  await savepoint.run({ command: ['sh', '-c', 'echo 2 > a; sleep 0.5'], tracer: 'none' })
  expect(savepoint.why('a').causes.length).toBeGreaterThan(0)
  expect(savepoint.why('.store/store').causes).toEqual([])
})

it('a process that goes on is said', async () => {
  savepoint = await space.open()
  space.sh('mkfifo go')
  const { trace } = await savepoint.run({
    command: ['sh', '-c', '(setsid sh -c "read line < go" >/dev/null 2>&1 &)'],
    tracer: 'none',
  })
  space.sh('echo > go')
  expect(trace).toMatchObject({ tracer: 'none', survivors: true })
})

describe('beside a tracer that tells commands only (ptrace)', () => {
  const command = ['sh', '-c', 'sh -c "echo 1 > f; sleep 0.3"; sleep 0.3; echo 2 > g; rm -r d']

  gated(isRoot, 'root', 'who changed a file is known by its process', async () => {
    space.write('d/x')
    savepoint = await space.open()
    const { trace } = await savepoint.run({ command, tracer: 'ptrace' })
    expect(trace).toMatchObject({ tracer: 'ptrace', lost: 0, survivors: false })
    const [cause] = savepoint.why('f').causes
    expect([cause!.execution?.argv.at(-1), cause!.likely]).toEqual(['echo 1 > f; sleep 0.3', []])
    expect(savepoint.snapshots().filter(({ type }) => type === 'guard').length).toBe(1)
  })

  gated(
    isRoot,
    'root',
    'what was changed is told before the next program: of whom it is, and what a guard is to find, depends on it',
    async () => {
      const count = 300
      savepoint = await space.open()
      const loop = `i=0; while [ $i -lt ${count} ]; do (echo $i > f$i; exec sleep 0); i=$((i + 1)); done`
      await savepoint.run({ command: ['sh', '-c', loop], tracer: 'ptrace' })
      const by = Array.from({ length: count }, (_, i) => savepoint.why(`f${i}`).causes[0]!.execution?.argv[0])
      expect(by).toEqual(by.map(() => 'sh'))
    },
  )

  gated(canDropPrivilege, 'setpriv', 'who changed a file is likely who ran then', async () => {
    space.write('d/x')
    const { error } = await runAsUser(space, [['run', { command, tracer: 'ptrace' }]])
    expect(error).toBeUndefined()
    savepoint = await space.open()
    const [cause] = savepoint.why('f').causes
    expect([cause!.execution, cause!.likely.map(({ argv }) => argv.at(-1))]).toEqual([
      undefined,
      expect.arrayContaining(['echo 1 > f; sleep 0.3']),
    ])
    expect(runCli(space, ['why', 'f']).stdout).toMatch(/\n {2}likely by sh -c .*echo 1/)
    expect(savepoint.why('g').causes[0]!.likely.map(({ argv }) => argv.at(-1))).not.toContain('echo 1 > f; sleep 0.3')
    expect(savepoint.snapshots().filter(({ type }) => type === 'guard').length).toBe(1)
  })
})

describe('--allow-sudo', () => {
  gated(
    isRoot && canDropPrivilege,
    'root and setpriv',
    'a set-user-id program keeps its rights, and it is said',
    async () => {
      compileC(
        join(space.base, 'whoami'),
        '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", (int)geteuid()); return 0; }',
      )
      space.sh('chown 12345 ../whoami; chmod 4755 ../whoami; chmod 755 ..')
      const script = '../whoami > id; echo 2 > a'
      const plain = await runAsUser(space, [['run', { command: ['sh', '-c', script] }]])
      expect([space.read('id'), plain.notices.join()]).toEqual([
        '0\n',
        expect.stringMatching(/`run --allow-sudo` gives them back/),
      ])
      const { notices, error } = await runAsUser(space, [['run', { command: ['sh', '-c', script], allowSudo: true }]])
      expect([error, space.read('id')]).toEqual([undefined, '12345\n'])
      expect(notices.join()).toMatch(/sudo works inside this run \(--allow-sudo\): commands are not traced/)
      savepoint = await space.open()
      expect([savepoint.trace().executions, ops('a')[0]]).toEqual([[], 'changed'])
      const named = await runAsUser(space, [['run', { command: ['rm', 'a'], allowSudo: true, tracer: 'seccomp' }]])
      expect([named.error?.message, space.read('a')]).toEqual([expect.stringMatching(/--allow-sudo/), '2\n'])
    },
  )

  gated(isRoot, 'root', 'where nothing is taken away, nothing changes', () => {
    const { status } = runCli(space, ['run', '--allow-sudo', '--', 'rm', 'a'])
    expect(status).toBe(0)
    expect(JSON.parse(runCli(space, ['trace', '--json']).stdout).commands.length).toBe(1)
  })
})
