/** A run whose supervisor is killed from inside: what is said of it before it is undone, and that it can be. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { builtCommand, savepoint } from './support/built-cli.ts'
import { dialogue } from './support/dialogue.ts'
import { keys, listedRunKeys, runKeys } from './support/json-keys.ts'
import { killedRun } from './support/killed-run.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('src/main.js', 'main\n')
  space.write('top', 'top\n')
})
afterEach(() => space.remove())

const { say, json } = dialogue(() => space)
const killed = (script: string) => expect(killedRun(space, script)).toBe('SIGKILL')

it('is interrupted in `runs`, not running; `undo` takes it back', () => {
  killed('rm -rf src')
  expect(say(['runs'])).toMatch(/^ID +EXIT +STATE +STARTED +TOOK +COMMAND\nrun_ID +interrupted +AGE .*rm -rf src/)
  const [run] = json('runs')
  expect(keys(run)).toEqual(listedRunKeys)
  expect(run).toMatchObject({ interrupted: true, ended_at: null })
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(space.read('src/main.js')).toBe('main\n')
  expect(json('runs')[0]).toMatchObject({ interrupted: false, signal: 'SIGKILL' })
})

it.each([
  ['rollback', ['rollback', 'HEAD']],
  ['revert', ['revert', 'src', '--from', '@']],
])('%s to HEAD goes to what that was before the end of the run was found out', (_verb, args) => {
  killed('rm -rf src')
  expect(savepoint(space, args).status).toBe(0)
  expect(space.read('src/main.js')).toBe('main\n')
})

it('what somebody did by hand until it is closed goes back with it, and is named with the way to it', () => {
  killed('rm -rf src')
  space.write('top', 'by hand\n')
  space.write('new', 'by hand\n')
  const { stdout } = savepoint(space, ['undo'])
  expect([space.read('src/main.js'), space.read('top'), space.read('new')]).toEqual(['main\n', 'top\n', undefined])
  expect(stdout).toMatch(
    /\nMay also hold somebody else's edit, made while the run went on: new, top\nTo have that back: /,
  )
  const way = /To have that back: savepoint (.*)/.exec(stdout)![1]!
  expect(savepoint(space, way.split(' ')).status).toBe(0)
  expect([space.read('src/main.js'), space.read('top'), space.read('new')]).toEqual([
    'main\n',
    'by hand\n',
    'by hand\n',
  ])
})

it('the same beside a repository that got many objects meanwhile, which has no versions to look for', () => {
  space.sh('git init -q lib')
  killed('rm -rf src')
  space.sh('mkdir lib/.git/objects/aa; cd lib/.git/objects/aa; touch $(seq 1001)')
  space.write('top', 'by hand\n')
  const { stdout } = savepoint(space, ['undo'])
  expect(stdout).toContain("May also hold somebody else's edit, made while the run went on: lib/.git, top\n")
  expect(stdout).toContain('Versions that the run replaced or removed: savepoint history top\n')
})

const isRoot = process.getuid!() === 0
it.skipIf(!isRoot)(
  `what somebody did after the machine was started again stays${isRoot ? '' : ' (skipped: needs root)'}`,
  async () => {
    killed('rm -rf src; echo agent > top')
    const later = (ms: number, since = Date.now()) => vi.waitUntil(() => Date.now() > since + ms, { timeout: 30_000 })
    // Both the offset and the time of a start are in full seconds.
    await later(2500)
    const [uptime] = readFileSync('/proc/uptime', 'utf8').split('.')
    await later(2100)
    space.write('top', 'by hand\n')
    space.write('new', 'by hand\n')
    // As seen there, the machine was started just now.
    const restarted = ['unshare', '--time', '--fork', '--boottime', `-${uptime}`, ...builtCommand]
    const { status, stdout } = spawnSync(restarted[0]!, [...restarted.slice(1), 'undo'], {
      cwd: space.dir,
      env: space.env,
      encoding: 'utf8',
    })
    expect(status).toBe(3)
    expect(stdout).toMatch(/\nLeft alone \(2\):\n {2}new: .*\n {2}top: /)
    expect([space.read('src/main.js'), space.read('top'), space.read('new')]).toEqual([
      'main\n',
      'by hand\n',
      'by hand\n',
    ])
  },
)

it('so is what the run had touched, and somebody wrote long after its trace ends', async () => {
  // Until its first second is in the timeline: from there on nothing more is told.
  killed('echo agent > top; sleep 1.5; echo agent > src/main.js')
  const last = Date.now()
  await vi.waitUntil(() => Date.now() > last + 2500, { timeout: 30_000 })
  space.write('top', 'by hand\n')
  expect(savepoint(space, ['undo']).stdout).toMatch(/\nMay also hold somebody else's edit, .*: (src\/main.js, )?top\n/)
  expect(space.read('top')).toBe('top\n')
})

it('so is what somebody removed long after its trace ends, and not what the run removed', async () => {
  space.write('lib/theirs', 'theirs\n')
  killed('rm -rf src; sleep 1.5')
  const last = Date.now()
  await vi.waitUntil(() => Date.now() > last + 2500, { timeout: 30_000 })
  space.sh('rm lib/theirs top')
  const { stdout } = savepoint(space, ['undo'])
  expect(stdout).toMatch(/\nMay have been edited .* or removed by them: lib\/theirs, top\n/)
  expect(['src/main.js', 'lib/theirs', 'top'].map(path => space.read(path))).toEqual(['main\n', 'theirs\n', 'top\n'])
})

it.each(['ptrace', 'none'])(
  'tracer %s: what changed after the last sign of life is named, and not what had before',
  async tracer => {
    expect(killedRun(space, 'echo agent > early; sleep 2; echo agent > top; sleep 1.5', ['--tracer', tracer])).toBe(
      'SIGKILL',
    )
    const last = Date.now()
    await vi.waitUntil(() => Date.now() > last + 2500, { timeout: 30_000 })
    space.write('top', 'by hand\n')
    space.write('new', 'by hand\n')
    const { stdout } = savepoint(space, ['undo'])
    expect(stdout).toMatch(
      /\nMay also hold somebody else's edit, made while the run went on: new, top\nTo have that back: /,
    )
    expect([space.read('early'), space.read('top'), space.read('new')]).toEqual([undefined, 'top\n', undefined])
  },
)

it('stands in `status` with the command that takes it back', () => {
  savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo two > top'])
  killed('rm -rf src')
  const text = say(['status'])
  expect(text).toMatch(
    /\nInterrupted: run_ID, AGE: sh -c 'rm -rf src; kill -9 .*' \(Savepoint was killed in it; what is there now counts as its end\)\nTo undo it: savepoint undo\nLast operation: run_ID: sh -c 'echo two > top', AGE\n$/,
  )
  expect(json('status').interrupted.map(keys)).toEqual([runKeys])
  savepoint(space, ['undo'])
  expect([space.read('src/main.js'), space.read('top')]).toEqual(['main\n', 'two\n'])
  expect(say(['status'])).not.toContain('Interrupted')
})

it('is closed when the next run begins: `undo` takes that one back first, and then this', () => {
  killed('rm -rf src')
  const { stderr } = savepoint(space, ['run', '--', 'sh', '-c', 'echo two > top'])
  expect(stderr).toMatch(/^savepoint: run_\w+ ended without us: .*\n(.*\n)+To undo: savepoint undo\n$/)
  expect(savepoint(space, ['undo']).stdout).toMatch(/^Undone: run_\w+: sh -c 'echo two > top'\nFiles: 1 replaced\n/)
  expect([space.read('top'), space.read('src/main.js')]).toEqual(['top\n', undefined])
  expect(savepoint(space, ['undo']).stdout).toMatch(/^Undone: run_\w+: sh -c 'rm -rf src;/)
  expect(space.read('src/main.js')).toBe('main\n')
})

it('is closed when another one ends that went on meanwhile: `undo` takes that one back first, as that says', async () => {
  const [ready, go] = ['ready', 'go'].map(name => join(space.base, name))
  const script = 'touch ../ready; until [ -e ../go ]; do sleep 0.02; done; echo two > top'
  const command = [...builtCommand, 'run', '--', 'sh', '-c', script]
  const outer = spawn(command[0]!, command.slice(1), { cwd: space.dir, env: space.env, stdio: 'ignore' })
  await vi.waitUntil(() => existsSync(ready!), { timeout: 30_000 })
  killed('rm -rf src')
  writeFileSync(go!, '')
  await once(outer, 'exit')
  expect(json('runs')[0]).toMatchObject({ interrupted: false, signal: 'SIGKILL' })
  expect(savepoint(space, ['undo']).stdout).toMatch(/^(Und|Not und)one: run_\w+: sh -c 'touch /)
})

it('the command is the one that works in the subdirectory where `status` is asked', () => {
  mkdirSync(space.at('other'))
  killed('rm -rf src')
  const { stdout } = savepoint(space, ['status'], { cwd: space.at('other') })
  expect(stdout).toContain('To undo it: savepoint undo --all\n')
  expect(savepoint(space, ['undo', '--all'], { cwd: space.at('other') }).status).toBe(0)
  expect(existsSync(space.at('src/main.js'))).toBe(true)
})

it('what is done after it is undone first, and then the run', () => {
  const good = json('snapshot', '-m', 'good').id
  killed('rm -rf src')
  savepoint(space, ['tag', 'then', good])
  expect(say(['status'])).toMatch(
    /\nTo undo it: savepoint rollback run_ID\nLast operation: tag then .*\nTo undo: savepoint undo\n$/,
  )
  expect(savepoint(space, ['undo']).stdout).toMatch(/^Undone: tag then/)
  expect(existsSync(space.at('src'))).toBe(false)
  expect(say(['operations'])).toMatch(/undo tag then.*\n.*tag then.*\n.*rm -rf src/)
  expect(savepoint(space, ['undo']).stdout).toMatch(/^Undone: run_\w+: sh -c 'rm -rf src;/)
  expect(space.read('src/main.js')).toBe('main\n')
  expect(savepoint(space, ['redo']).stdout).toMatch(/^Redone: run_/)
  expect(savepoint(space, ['redo']).stdout).toMatch(/^Redone: tag then/)
})

it('that was not protected does not promise an undo', () => {
  savepoint(space, ['run', '-q', '--', 'true'])
  space.write('savepoint.yaml', 'snapshots: { triggers: { disable_pre_run: true } }\n')
  killed('rm top')
  const { stdout } = savepoint(space, ['status'])
  expect(stdout).toMatch(/Interrupted: run_\w+, .*; it was not protected\)\nLast operation/)
  expect(stdout).not.toContain('To undo it')
})

it('that was not protected stops undo: what is older is not taken back from under it', () => {
  savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo two > top'])
  space.write('savepoint.yaml', 'snapshots: { triggers: { disable_pre_run: true } }\n')
  killed('echo three > top')
  const { status, stderr } = savepoint(space, ['undo'])
  expect(stderr).toMatch(
    /^savepoint: run_\w+ ended without us: it was not protected, and cannot be undone\nsavepoint: Cannot undo run_\w+: .*: it was not protected\n {2}hint: /m,
  )
  expect([status, space.read('top')]).toEqual([1, 'three\n'])
  expect(say(['operations'])).toMatch(/not protected +run_/)
})

it('that was killed before its command began is nothing to undo, and not in the way of what is older', () => {
  savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo two > top'])
  const env = { ...space.env, SAVEPOINT_FAILPOINT: 'capture:before-root' }
  expect(savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo three > top'], { env }).status).toBe(null)
  const undone = savepoint(space, ['undo'])
  expect([undone.status, undone.stderr]).toEqual([0, expect.stringContaining('its command had not begun\n')])
  expect(space.read('top')).toBe('top\n')
})

it('whose end cannot be captured, nor when it is to be undone, says so, and how to go back', () => {
  const env = { ...space.env, SAVEPOINT_FAILPOINT: 'run:operation@ENOSPC' }
  const run = savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo two > top; exit 7'], { env })
  expect([run.status, run.stderr]).toEqual([7, expect.stringContaining('the state after the run is NOT captured')])
  const [{ id, before }] = json('runs')
  const undone = savepoint(space, ['undo'], { env })
  const way = `\`savepoint rollback ${before}\` goes back to the state before it, whoever has changed what since\n`
  expect(undone.stderr).toMatch(
    /^savepoint: the state after run_\w+ can still not be captured: .*\nsavepoint: Cannot undo run_\w+: .*: the state at its end was not captured\n {2}hint: /,
  )
  expect(undone.stderr).toContain(way)
  expect(savepoint(space, ['rollback', id], { env }).stderr).toContain(way)
  expect(say(['operations'])).toMatch(/ run +.* end not captured +run_/)
  expect(savepoint(space, ['rollback', before]).status).toBe(0)
  expect(space.read('top')).toBe('top\n')
})

it('stands once in the list of operations, also when it was killed while its end was written', () => {
  const env = { ...space.env, SAVEPOINT_FAILPOINT: 'run:operation' }
  expect(savepoint(space, ['run', '-q', '--', 'sh', '-c', 'rm -rf src'], { env }).status).toBe(null)
  savepoint(space, ['run', '-q', '--', 'true'])
  const summaries = json('operations').map(({ summary }: { summary: string }) => summary.replace(/^run_\w+: /, ''))
  expect(summaries.toSorted()).toEqual(["sh -c 'rm -rf src'", 'true'])
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(space.read('src/main.js')).toBe('main\n')
})

it('the trace has the commands of its last second, before and after it is closed', () => {
  // The file has them at once, the timeline a second later.
  const written = `until grep -q '"exit_code":3' "$SAVEPOINT_HOME"/timelines/*/runs/*/exec.jsonl; do sleep .05; done`
  killed(`/bin/echo one; sh -c "/bin/echo two; exit 3"; ${written}`)
  const told = () =>
    json('trace').commands.map(({ argv, exit_code }: { argv: string[]; exit_code: number | null }) => [
      argv.join(' '),
      exit_code,
    ])
  const expected = [
    ['/bin/echo one', 0],
    ['sh -c /bin/echo two; exit 3', 3],
    ['/bin/echo two', 0],
  ]
  expect(told()).toEqual(expect.arrayContaining(expected))
  const before = told()
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(told()).toEqual(before)
})
