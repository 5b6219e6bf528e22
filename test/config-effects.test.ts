/** T8: every key is seen to have its effect. */

import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultConfig, keysOf } from '../src/config/config.ts'
import { doctor, type OpenOptions } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

const inRepository = (yaml: string) => space.write('savepoint.yaml', yaml)
function inHome(yaml: string): void {
  mkdirSync(space.home, { recursive: true })
  writeFileSync(join(space.home, 'config.yaml'), yaml)
}

/** Keys that a test of this file (or of git-exclusions.test.ts, live-run.test.ts or backend-archive.test.ts) shows at work. */
const shown = [
  'snapshots.disabled',
  'snapshots.backend',
  'snapshots.archive_compression',
  'snapshots.triggers.disable_pre_run',
  'snapshots.triggers.disable_git_commits',
  'snapshots.triggers.disable_builds',
  'snapshots.triggers.disable_tests',
  'snapshots.triggers.disable_idle',
  'snapshots.triggers.disable_guard',
  'snapshots.triggers.disable_interval',
  'snapshots.triggers.enable_change',
  'snapshots.triggers.idle_threshold_seconds',
  'snapshots.triggers.build_commands',
  'snapshots.triggers.test_commands',
  'snapshots.triggers.guard_commands',
  'snapshots.triggers.guard_max_hold_ms',
  'snapshots.auto_interval_seconds',
  'snapshots.exclude.ignore_gitignore',
  'snapshots.exclude.additional',
  'snapshots.exclude.keep',
  'snapshots.retention.max_count',
  'snapshots.retention.native_max',
  'snapshots.retention.delete_initial',
  'snapshots.retention.auto_max',
  'snapshots.retention.manual_max',
  'snapshots.max_file_bytes',
  'snapshots.min_free_bytes',
  'snapshots.max_store_bytes',
  'tracing.disable_exec',
  'tracing.tracer',
  'tracing.redact',
]

it('every key is shown here', () => {
  expect(shown.toSorted()).toEqual(keysOf(defaultConfig).toSorted())
})

describe('doctor says what makes every capture fail', () => {
  const say = async (options: Partial<OpenOptions> = {}) => {
    const { checks } = await doctor({ cwd: space.dir, home: space.home, env: space.env, ...options })
    return checks
      .filter(({ state }) => state !== 'ok')
      .map(({ name, state, detail, fix }) => [name, state, detail, fix])
  }
  const wrong = (backend: string) => [
    'backend',
    'problem',
    `${backend} is configured, and does not work here: this is not macOS`,
    'Use auto',
  ]

  it('a backend that does not work here, by file or by variable, also from below and with a target', async () => {
    expect(await say()).toEqual([])
    await space.open()
    inRepository('snapshots:\n  backend: tmutil\n')
    mkdirSync(space.at('below'))
    expect(await say()).toEqual([wrong('tmutil')])
    expect(await say({ cwd: space.at('below') })).toEqual([wrong('tmutil')])
    expect(await say({ cwd: space.base, target: space.dir })).toEqual([wrong('tmutil')])
    expect(await say({ env: { ...space.env, SAVEPOINT_BACKEND: 'apfs' } })).toEqual([wrong('apfs')])
    expect(await say({ env: { ...space.env, SAVEPOINT_BACKEND: 'zfs' } })).toEqual([
      [
        'backend',
        'problem',
        'zfs is configured, and does not work here: the target is not on ZFS',
        'Make a dataset for it: see docs/backends.md',
      ],
    ])
    expect(await say({ env: { ...space.env, SAVEPOINT_BACKEND: 'cas' } })).toEqual([])
    expect(runCli(space, ['doctor'])).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/^problem {2}backend/m),
    })
  })

  it('snapshots that are turned off', async () => {
    inRepository('snapshots:\n  disabled: true\n')
    expect(await say()).toEqual([
      ['snapshots', 'warning', expect.stringContaining('snapshots.disabled'), expect.stringContaining('false')],
    ])
  })
})

describe('snapshots', () => {
  it('disabled: no snapshot is taken, a run starts and says that it cannot be undone', async () => {
    inRepository('snapshots:\n  disabled: true\n')
    const savepoint = await space.open()
    await expect(savepoint.snapshot()).rejects.toMatchObject({ code: 'snapshots.disabled' })
    const result = await savepoint.run({ command: ['sh', '-c', 'echo x > made'] })
    expect(result).toMatchObject({ exitCode: 0, before: undefined, after: undefined })
    expect([existsSync(space.at('made')), savepoint.snapshots()]).toEqual([true, []])
    expect(space.notices).toContainEqual(expect.stringContaining('cannot be undone'))
  })

  it('triggers.disable_pre_run: a run cannot be undone; a manual snapshot is still possible', async () => {
    inRepository('snapshots:\n  triggers:\n    disable_pre_run: true\n')
    const savepoint = await space.open()
    const result = await savepoint.run({ command: ['sh', '-c', 'echo x > made'] })
    expect([result.before, savepoint.snapshots()]).toEqual([undefined, []])
    expect(space.notices).toContainEqual(expect.stringContaining('this run cannot be undone'))
    expect((await savepoint.snapshot()).type).toBe('manual')
  })

  it('triggers.disable_pre_run: what is destroyed first is captured all the same, and so is what comes after', async () => {
    inRepository('snapshots:\n  triggers:\n    disable_pre_run: true\n    guard_max_hold_ms: 60000\n')
    space.write('src/old', 'old\n')
    space.write('Makefile', 'test:\n')
    const savepoint = await space.open()
    const result = await savepoint.run({ command: ['sh', '-c', 'rm -rf src; echo x > made; make -s test'] })
    expect(result).toMatchObject({ exitCode: 0, before: undefined, after: undefined, trace: { snapshots: 2 } })
    const [guard, test] = savepoint.snapshots()
    expect([guard!.type, guard!.command, test!.type, test!.label]).toEqual(['guard', 'rm -rf src', 'test', 'passed'])
    expect(savepoint.read(guard!.id, 'src/old').toString()).toBe('old\n')
    expect(savepoint.read(test!.id, 'made').toString()).toBe('x\n')
    await savepoint.rollback(guard!.id)
    expect([space.read('src/old'), existsSync(space.at('made'))]).toEqual(['old\n', false])
  })

  it('backend: auto and cas work; one that does not work here is refused, never replaced in silence', async () => {
    for (const backend of ['auto', 'cas']) {
      inRepository(`snapshots:\n  backend: ${backend}\n`)
      expect((await (await space.open()).snapshot()).backend).toBe('cas')
    }
    // One that does not work here keeps nothing, and nothing is kept in its place; what there is can be had back.
    for (const backend of ['btrfs', 'zfs', 'apfs', 'tmutil']) {
      inRepository(`snapshots:\n  backend: ${backend}\n`)
      const savepoint = await space.open()
      await expect(savepoint.snapshot()).rejects.toMatchObject({ code: 'unsupported', exitCode: 13 })
      await expect(savepoint.run({ command: ['touch', 'begun'] })).rejects.toMatchObject({
        code: 'command.failed-to-start',
        message: expect.stringMatching(`Cannot use backend ${backend}: (the target|this) is not`),
      })
      expect(existsSync(space.at('begun'))).toBe(false)
      expect(savepoint.snapshots()).toHaveLength(2)
    }
    inRepository('')
    const named = await space.open({ env: { ...space.env, SAVEPOINT_BACKEND: 'zfs' } })
    await expect(named.snapshot()).rejects.toMatchObject({ code: 'unsupported' })
  })

  it('max_file_bytes: a larger file is left out, listed, and left alone', async () => {
    inRepository('snapshots:\n  max_file_bytes: 10 KB\n')
    space.write('small', Buffer.alloc(10_000, 1))
    space.write('large', Buffer.alloc(10_001, 1))
    const savepoint = await space.open()
    const snapshot = await savepoint.snapshot()
    expect(snapshot).toMatchObject({ skippedCount: 1, skipped: [{ path: 'large', reason: 'too-large' }] })
    expect(await savepoint.coverage('large')).toMatchObject({ covered: false, reason: 'too-large', versions: 0 })
    space.write('large', 'changed')
    space.write('small', 'changed')
    await savepoint.rollback(snapshot.id)
    expect([space.read('large'), space.read('small')?.length]).toEqual(['changed', 10_000])
  })

  it('min_free_bytes: below the floor captures stop with a notice, a rollback still works', async () => {
    const first = await (await space.open()).snapshot()
    space.write('a', 'a2')
    const { bavail, bsize } = statfsSync(space.base)
    inHome(`snapshots:\n  min_free_bytes: ${bavail * bsize * 2}\n`)
    const savepoint = await space.open()
    await expect(savepoint.snapshot()).rejects.toMatchObject({
      code: 'disk.full',
      message: expect.stringContaining('min_free_bytes'),
    })
    expect(savepoint.snapshots()).toHaveLength(1)
    // Looking stores nothing then.
    const stored = (await savepoint.status()).storeBytes
    space.write('new', randomBytes(300_000))
    expect((await savepoint.status()).counts).toEqual({ added: 1, modified: 1, deleted: 0 })
    expect((await savepoint.status()).storeBytes).toBe(stored)
    rmSync(space.at('new'))
    const { safety } = await savepoint.rollback(first.id)
    expect([space.read('a'), savepoint.read(safety!.id, 'a').toString()]).toEqual(['a1', 'a2'])
    await savepoint.undo()
    expect(space.read('a')).toBe('a2')
  })

  it('max_store_bytes: a full store stops captures and names what to delete; a rollback still works', async () => {
    space.write('random', randomBytes(300_000))
    const first = await (await space.open()).snapshot()
    inHome('snapshots:\n  max_store_bytes: 200 KB\n')
    const savepoint = await space.open()
    space.write('a', 'a2')
    await expect(savepoint.snapshot()).rejects.toMatchObject({
      code: 'disk.full',
      message: expect.stringContaining('max_store_bytes'),
      hint: expect.stringContaining(first.id),
    })
    await savepoint.rollback(first.id)
    expect(space.read('a')).toBe('a1')
    inHome('snapshots:\n  max_store_bytes: unlimited\n')
    await (await space.open()).snapshot()
  })
})

describe('retention', () => {
  it('manual_max: one more manual snapshot is refused with a hint; after a deletion there is room', async () => {
    inRepository('snapshots:\n  retention:\n    manual_max: 2\n')
    const savepoint = await space.open()
    const first = await savepoint.snapshot()
    await savepoint.snapshot({ label: 'second' })
    await expect(savepoint.snapshot()).rejects.toMatchObject({
      code: 'pool.full',
      hint: expect.stringContaining(`savepoint delete ${first.id}`),
    })
    // Other kinds do not count: a run is still protected.
    expect((await savepoint.run({ command: ['true'] })).before!.type).toBe('pre-run')
    await savepoint.delete([first.id])
    await savepoint.snapshot()
  })

  it('delete_initial: prune takes pre-run snapshots only when it is set', async () => {
    const runs = async () => {
      const savepoint = await space.open()
      for (const text of ['one', 'two', 'three']) await savepoint.run({ command: ['sh', '-c', `echo ${text} > a`] })
      return savepoint
    }
    const kept = await runs()
    expect(
      (await kept.prune({ keep: 0 })).decisions.filter(({ snapshot, keep }) => snapshot.type === 'pre-run' && !keep),
    ).toEqual([])
    inRepository('snapshots:\n  retention:\n    delete_initial: true\n')
    const savepoint = await space.open()
    const { decisions, operation } = await savepoint.prune({ keep: 0 })
    const gone = decisions.filter(({ snapshot, keep }) => snapshot.type === 'pre-run' && !keep)
    expect(gone.length).toBeGreaterThan(0)
    expect(operation?.kind).toBe('prune')
    expect(savepoint.snapshots().some(({ id }) => id === gone[0]!.snapshot.id)).toBe(false)
    await savepoint.undo()
    expect(savepoint.snapshots().some(({ id }) => id === gone[0]!.snapshot.id)).toBe(true)
  })
})

describe('where it comes from', () => {
  it('savepoint.yaml of the target wins over config.yaml, SAVEPOINT_CONFIG over both, key by key', async () => {
    inHome('snapshots:\n  max_file_bytes: 1 KB\n  retention:\n    manual_max: 5\n    auto_max: 3\n')
    inRepository('snapshots:\n  retention:\n    manual_max: 6\n')
    const { snapshots } = (await space.open()).config
    expect([snapshots.max_file_bytes, snapshots.retention.manual_max, snapshots.retention.auto_max]).toEqual([
      1000, 6, 3,
    ])
    const extra = join(space.base, 'extra.yaml')
    writeFileSync(extra, 'snapshots:\n  retention:\n    manual_max: 7\n')
    const env = { ...space.env, SAVEPOINT_CONFIG: extra }
    expect((await space.open({ env })).config.snapshots.retention).toMatchObject({ manual_max: 7, auto_max: 3 })
    // That of a subdirectory means nothing: the target's root counts.
    space.write('sub/savepoint.yaml', 'snapshots:\n  retention:\n    manual_max: 8\n')
    expect((await space.open({ cwd: space.at('sub') })).config.snapshots.retention.manual_max).toBe(6)
  })

  it('an unknown key is an error with line, column and a suggestion, and nothing happens', async () => {
    inRepository('snapshots:\n  retention:\n    manual_maks: 5\n')
    await expect(space.open()).rejects.toMatchObject({ code: 'config.invalid', exitCode: 2 })
    const { status, stderr } = runCli(space, ['run', '--', 'touch', 'made'])
    expect(stderr).toMatch(/savepoint\.yaml:3/)
    expect(stderr).toContain('manual_max')
    expect([status, existsSync(space.at('made'))]).toEqual([125, false])
  })

  it('what the repository weakens is said in one line by run; what the user weakens is not', () => {
    inHome('snapshots:\n  exclude:\n    additional: [mine]\n')
    expect(runCli(space, ['run', '--', 'true']).stderr).not.toContain('weakens')
    inRepository('snapshots:\n  exclude:\n    additional: [mine, "*.log", tmp]\n  max_file_bytes: 1 MB\n')
    const lines = runCli(space, ['run', '--', 'true'])
      .stderr.split('\n')
      .filter(line => line.includes('weakens'))
    expect(lines).toEqual([expect.stringMatching(/2 extra exclusions.*max_file_bytes lowered to 1(\.0)? M/)])
  })
})

describe('tracing.redact', () => {
  const secret = 'hunter2hunter2'
  const writtenDown = async () => {
    const savepoint = await space.open()
    await savepoint.run({ command: ['true', '--password', secret, 'my-own-thing'] })
    return JSON.stringify(
      [savepoint.runs(), savepoint.snapshots(), savepoint.operations()].map(rows =>
        rows.map(row => ({ ...row, root: '' })),
      ),
    )
  }

  it('hides passwords in what is recorded of a command by default', async () => {
    const text = await writtenDown()
    expect(text).not.toContain(secret)
    expect(text).toContain('‹redacted›')
    expect(text).toContain('my-own-thing')
  })

  it('takes patterns of the user instead', async () => {
    inHome("tracing: { redact: ['my-own-\\w+'] }")
    const text = await writtenDown()
    expect(text).toContain(secret)
    expect(text).not.toContain('my-own-thing')
  })

  it('of the repository cannot keep the command from starting', async () => {
    space.write('savepoint.yaml', "tracing: { redact: ['(a+)+$'] }")
    const savepoint = await space.open()
    const { exitCode } = await savepoint.run({ command: ['sh', '-c', 'exit 7', `${'a'.repeat(5000)}!`] })
    expect(exitCode).toBe(7)
    expect(savepoint.runs()[0]!.command).toEqual(['sh', '‹redacted›', '‹redacted›', '‹redacted›'])
    expect(space.notices.join('\n')).toContain('the patterns of tracing.redact take too long')
  })
})

describe('tracing', () => {
  it.each([
    ['disable_exec: true', 'none'],
    ['tracer: none', 'none'],
    ['tracer: seccomp', 'seccomp'],
    ['tracer: auto', 'seccomp'],
  ])('%s', async (yaml, tracer) => {
    inRepository(`tracing: { ${yaml} }\n`)
    const savepoint = await space.open()
    const { trace } = await savepoint.run({ command: ['rm', 'a'] })
    expect([trace?.tracer, savepoint.trace().executions.length]).toEqual([tracer, tracer === 'none' ? 0 : 1])
  })

  it('tracer: one that is not there: the command is not started', async () => {
    inRepository('tracing: { tracer: eslogger }\n')
    const savepoint = await space.open()
    await expect(savepoint.run({ command: ['rm', 'a'] })).rejects.toMatchObject({ exitCode: 125 })
    expect(existsSync(space.at('a'))).toBe(true)
    expect(savepoint.runs().every(({ endedAt }) => endedAt !== undefined)).toBe(true)
  })
})
