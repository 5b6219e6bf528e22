/** The target directory itself is removed, or something else takes its place, while a shell still stands in it. */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { allTargets } from '../src/engine/target-registry.ts'
import type { Snapshot } from '../src/index.ts'
import { savepoint, savepointInShell } from './support/built-cli.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

/** A shell that starts in the target and stays in it whatever becomes of it. */
const shell = (script: string, cwd = space.dir) =>
  spawnSync('sh', ['-c', script.replaceAll('savepoint ', `${savepointInShell} `)], {
    cwd,
    env: space.env,
    encoding: 'utf8',
  })
const besides = (name: string) => join(space.base, name)

/** More than a capture or a restore does on its own thread. */
function writeMany(): void {
  for (let i = 0; i < 700; i++) space.write(`d${i % 9}/f${i}`, noise(40_000, i))
}

it('R14 rm -rf of a large workspace inside the run: the hinted undo works in the same shell', () => {
  writeMany()
  const mode = statSync(space.dir).mode
  const { status, stderr } = shell(`savepoint run -q -- sh -c 'rm -rf "$PWD"'; savepoint undo`)
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringMatching(/is made again/) })
  expect(readFileSync(space.at('d3/f3')).equals(noise(40_000, 3))).toBe(true)
  expect(statSync(space.dir).mode).toBe(mode)
})

it('R14 a run that removes the workspace and makes another one: captured, undone, redone', () => {
  writeMany()
  const script =
    'cd /; rm -rf "$DIR"; mkdir "$DIR"; cd "$DIR"; i=0; while [ $i -lt 700 ]; do echo new > n$i; i=$((i+1)); done'
  const { status, stderr } = shell(`DIR=$PWD; export DIR; savepoint run -q -- sh -c '${script}'; savepoint undo`)
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringMatching(/NOT captured|uv_cwd/) })
  expect([existsSync(space.at('n5')), existsSync(space.at('d5/f5'))]).toEqual([false, true])
})

it('F6 a symlink in the place of the target: nothing is written through it, and moving it away makes undo work', () => {
  mkdirSync(besides('precious'))
  writeFileSync(besides('precious/thesis'), 'precious')
  writeFileSync(besides('precious/same'), 'mine')
  space.write('same', 'theirs')
  space.write('f', 'hi')
  const run = shell(
    `savepoint run -- sh -c 'cd ..; rm -rf "${space.dir}"; ln -s precious "${space.dir}"'; savepoint undo`,
  )
  expect(run).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/put a symlink in the place of the target directory/),
  })
  expect(run.stderr).toMatch(/Cannot make .* again: a symlink has taken its place\n {2}hint: Move it away/)
  expect(readFileSync(besides('precious/same'), 'utf8')).toBe('mine')
  expect(readFileSync(besides('precious/thesis'), 'utf8')).toBe('precious')
  expect(lstatSync(space.dir).isSymbolicLink()).toBe(true)
  const hint = /hint: .*: (mv .*)\n/.exec(run.stderr)![1]!
  const back = shell(hint, space.base)
  expect(back).toMatchObject({ status: 0 })
  expect([space.read('same'), space.read('f')]).toEqual(['theirs', 'hi'])
  expect(readFileSync(besides('precious/same'), 'utf8')).toBe('mine')
})

it('who removed the target after a run: its undo leaves that alone, makes nothing, and can be said again', async () => {
  space.write('f', '1')
  space.write('same', 'same')
  expect(shell(`savepoint run -q -- sh -c 'echo 2 > f'`).status).toBe(0)
  rmSync(space.dir, { recursive: true })
  for (const args of [['undo', '--dry-run'], ['undo'], ['undo']]) {
    const { stdout, stderr } = savepoint(space, [...args, '-t', space.dir], { cwd: space.base })
    expect([stdout, stderr]).toEqual([
      expect.stringMatching(/f: edited by somebody else since/),
      expect.stringContaining('the target directory is gone\n'),
    ])
    expect(existsSync(space.dir)).toBe(false)
  }
  const engine = await space.open({ cwd: space.base, target: space.dir })
  expect(engine.operations().map(({ kind, state }) => [kind, state])).toEqual([['run', 'done']])
})

it('a symlink in the place of a directory above the target is not followed either', async () => {
  mkdirSync(besides('up/target'), { recursive: true })
  mkdirSync(besides('other/target'), { recursive: true })
  writeFileSync(besides('up/target/f'), 'one')
  writeFileSync(besides('other/target/f'), 'foreign')
  const engine = await space.open({ cwd: besides('up/target') })
  const { id } = await engine.snapshot()
  rmSync(besides('up'), { recursive: true })
  symlinkSync('other', besides('up'))
  await expect(engine.rollback(id)).rejects.toThrow()
  expect(readFileSync(besides('other/target/f'), 'utf8')).toBe('foreign')
})

it('a file in the place of the target: undo says so and how to go on', () => {
  space.write('f', 'hi')
  const { status, stderr } = shell(
    `savepoint run -q -- sh -c 'cd ..; rm -rf "${space.dir}"; echo file > "${space.dir}"'; savepoint undo`,
  )
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/Cannot make .* again: a file has taken its place\n {2}hint: Move it away.*mv /),
  })
  expect(readFileSync(space.dir, 'utf8')).toBe('file\n')
})

it('R13 an interrupted rollback waits for a target that is away, and is completed when it comes back', async () => {
  space.write('a', 'one')
  space.write('b', 'one')
  expect(savepoint(space, ['snapshot', '-m', 's0']).status).toBe(0)
  space.write('a', 'two')
  space.write('b', 'two')
  const killed = savepoint(space, ['rollback', 's0'], { env: { ...space.env, SAVEPOINT_FAILPOINT: 'restore:place' } })
  expect(killed.status).not.toBe(0)
  renameSync(space.dir, `${space.dir}.away`)
  expect(savepoint(space, ['-t', space.dir, 'snapshot'], { cwd: space.base }).status).toBe(1)
  renameSync(`${space.dir}.away`, space.dir)
  expect(savepoint(space, ['status']).stderr).toMatch(/completed a rollback that was interrupted/)
  expect([space.read('a'), space.read('b')]).toEqual(['one', 'one'])
})

describe('a run that moves the target away', () => {
  const away = () => `${space.dir} moved`
  const edited = 'echo edited > f; echo made > made; rm gone'
  const was = { f: 'hi', gone: 'gone', left: 'not captured', made: undefined }
  const now = () => Object.fromEntries(Object.keys(was).map(path => [path, space.read(path)]))

  /** What is ignored is in no snapshot: only moving the directory itself brings it back. */
  function moveAway(more = 'true') {
    space.write('.savepointignore', 'left\n')
    for (const [path, content] of Object.entries(was)) if (content !== undefined) space.write(path, content)
    return shell(`savepoint run -- sh -c '${edited}; mv "${space.dir}" "${away()}"; ${more}'`)
  }

  it.each([
    ['inside of the moved directory', away, []],
    ['elsewhere, with its old path', () => space.base, () => ['-t', space.dir]],
    ['elsewhere, with its new path', () => space.base, () => ['-t', away()]],
  ])('undo moves it back and takes back what changed in it: %s', (_, cwd, target) => {
    const { stderr } = moveAway()
    expect(stderr).toContain(`savepoint: the run moved the target directory to ${away()}; undo moves it back\n`)
    expect(stderr).toMatch(/; 1 added, 1 modified, 1 deleted\n(.*\n)+To undo: savepoint undo\n$/)
    const args = typeof target === 'function' ? target() : target
    const planned = savepoint(space, ['undo', '--dry-run', ...args], { cwd: cwd() })
    expect([planned.status, planned.stdout]).toEqual([
      0,
      expect.stringContaining(`(moved back to ${space.dir})\nFiles: `),
    ])
    expect([existsSync(space.dir), existsSync(away())]).toEqual([false, true])
    const undo = savepoint(space, ['undo', ...args], { cwd: cwd() })
    expect(undo).toMatchObject({ status: 0, stdout: expect.stringContaining(`(moved back to ${space.dir})\n`) })
    expect([now(), existsSync(away())]).toEqual([was, false])
    expect(savepoint(space, ['status'])).toMatchObject({ status: 0, stderr: '' })
  })

  it('and changes nothing else: undo moves it back, redo away again, and so on', () => {
    space.write('f', 'hi')
    expect(shell(`savepoint run -- mv "${space.dir}" "${away()}"`).stderr).toMatch(
      /; nothing changed but the place of the directory\nTo undo: savepoint undo\n$/,
    )
    for (let times = 0; times < 2; times++) {
      expect(shell('savepoint undo', away()).status).toBe(0)
      expect([space.read('f'), existsSync(away())]).toEqual(['hi', false])
      const planned = savepoint(space, ['redo', '--dry-run'])
      expect([planned.status, planned.stdout]).toEqual([0, expect.stringContaining(`(moved to ${away()})\n`)])
      expect(existsSync(away())).toBe(false)
      expect(savepoint(space, ['redo'])).toMatchObject({ status: 0, stdout: expect.stringContaining('(moved to ') })
      expect([existsSync(space.dir), readFileSync(join(away(), 'f'), 'utf8')]).toEqual([false, 'hi'])
    }
  })

  it('redo does again what changed in it, and refuses where something has taken the place', () => {
    moveAway()
    const state = () => shell(`cat f made left; ls`, away()).stdout
    const after = state()
    expect(shell('savepoint undo', away()).status).toBe(0)
    mkdirSync(away())
    const refused = savepoint(space, ['redo'])
    expect([refused.status, now()]).toEqual([1, was])
    const help = /say it again: (mv .*)\n/.exec(refused.stderr)![1]!
    expect(shell(help.replace(/\bsavepoint /g, 'savepoint '), space.base).status).toBe(0)
    expect([state(), existsSync(space.dir)]).toEqual([after, false])
  })

  it('from a subdirectory the whole needs a word, as every operation that reaches beyond it', () => {
    space.write('sub/f', 'hi')
    expect(shell(`savepoint run -q -- mv "${space.dir}" "${away()}"`).status).toBe(0)
    const inside = { cwd: join(away(), 'sub') }
    expect(savepoint(space, ['undo'], inside)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('undo --all'),
    })
    expect(existsSync(space.dir)).toBe(false)
    expect(savepoint(space, ['undo', '--all'], inside).status).toBe(0)
    expect(space.read('sub/f')).toBe('hi')
  })

  it.each([
    ['a link to it', () => `ln -s "${away()}" "${space.dir}"`],
    ['a file', () => `echo file > "${space.dir}"`],
  ])('and leaves %s in its place: the hint moves that away and works', (_, put) => {
    moveAway(put())
    for (const target of [space.dir, away()]) {
      expect(savepoint(space, ['undo', '-t', target], { cwd: space.base })).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/Cannot move .* back to .*: something has taken its place\n {2}hint: /),
      })
    }
    const { stderr } = savepoint(space, ['undo'], { cwd: away() })
    const hint = /hint: Move that away, then say it again: (mv .*)\n/.exec(stderr)![1]!
    expect(shell(hint, space.base).status).toBe(0)
    expect(now()).toEqual(was)
  })

  it('and what it changed cannot be taken back now: said with where the directory is; the next undo does the rest', () => {
    moveAway()
    const failing = { env: { ...space.env, SAVEPOINT_FAILPOINT: 'restore:staged@EIO' }, cwd: away() }
    const { status, stderr } = savepoint(space, ['undo'], failing)
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining(
        `the target directory was moved back to ${space.dir}; what the run changed in it is not undone`,
      ),
    ])
    expect([space.read('f'), existsSync(away())]).toEqual(['edited\n', false])
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(now()).toEqual(was)
  })

  it('killed between the move and the restore: the next undo does the rest', () => {
    moveAway()
    const killed = { env: { ...space.env, SAVEPOINT_FAILPOINT: 'restore:journal' }, cwd: away() }
    expect(savepoint(space, ['undo'], killed).signal).toBe('SIGKILL')
    expect([existsSync(space.dir), space.read('f')]).toEqual([true, 'edited\n'])
    expect(savepoint(space, ['status']).stderr).toContain('completed an undo that was interrupted')
    expect(now()).toEqual(was)
  })
})

it('--adopt takes the timeline of a directory that is gone, and not of one that is there', async () => {
  space.write('f', 'one')
  const { id } = await (await space.open()).snapshot()
  const thief = besides('thief')
  mkdirSync(thief)
  expect(savepoint(space, ['--adopt', space.dir, 'log'], { cwd: thief })).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/Cannot adopt .* is still there/),
  })
  expect(savepoint(space, ['log', '--json']).stdout).toContain(id)
  rmSync(space.dir, { recursive: true })
  expect(savepoint(space, ['--adopt', space.dir, 'log', '--json'], { cwd: thief }).stdout).toContain(id)
})

it('--adopt in a directory that has a timeline: that one takes the place of the other', async () => {
  space.write('f', 'one')
  const { id } = await (await space.open()).snapshot()
  const heir = besides('heir')
  mkdirSync(join(heir, 'below'), { recursive: true })
  const own = await (await space.open({ cwd: heir })).snapshot()
  rmSync(space.dir, { recursive: true })
  const ids = (args: string[], cwd = heir) =>
    JSON.parse(savepoint(space, ['snapshots', '--json', ...args], { cwd }).stdout).map((each: Snapshot) => each.id)
  const adopting = () => savepoint(space, ['status', '--adopt', space.dir], { cwd: heir }).stderr
  const timeline = adopting().match(`had \\((\\w+)\\) is that of ${space.dir} from now on`)![1]!
  expect(adopting()).toContain(`goes on with this timeline already; the one that it had before is ${timeline}`)
  expect([ids([]), ids([], join(heir, 'below')), ids(['-t', space.dir])]).toEqual([[id], [id], [own.id]])
  const third = besides('third')
  mkdirSync(third)
  await (await space.open({ cwd: third })).snapshot()
  expect(ids(['--adopt', space.dir], third)).toEqual([own.id])
  rmSync(third, { recursive: true })
  expect([ids(['--adopt', timeline]), ids([])]).toEqual([[own.id], [own.id]])
  const [other] = allTargets(space.home).filter(target => target.id !== timeline)
  const inside = `${savepointInShell} status --adopt '${other!.id}'; exit 7`
  const { status, stderr } = savepoint(space, ['run', '-q', '--', 'sh', '-c', inside], { cwd: heir })
  expect({ status, stderr }).toEqual({
    status: 7,
    stderr: expect.stringMatching(/Cannot adopt .*: run_\w+ goes on in /),
  })
  expect(ids([])).toContain(own.id)
})

it('a home below /proc is refused, not waited for', () => {
  const { status, stderr } = savepoint(space, ['snapshot'], {
    env: { ...space.env, SAVEPOINT_HOME: '/proc/nope' },
    timeout: 60_000,
  })
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/Cannot use \/proc\/nope: /) })
})

describe('a timeline without a snapshot, as the first capture failed', () => {
  beforeEach(() => {
    space.write('a', 'old')
    const floor = join(space.home, 'config.yaml')
    mkdirSync(space.home, { recursive: true })
    writeFileSync(floor, 'snapshots: {min_free_bytes: 900 TB}\n')
    expect(savepoint(space, ['run', '--', 'true']).status).toBe(125)
    rmSync(floor)
    // At the same time as the old one, so that it has another number.
    mkdirSync(join(space.base, 'new'))
    rmSync(space.dir, { recursive: true })
    renameSync(join(space.base, 'new'), space.dir)
    space.write('a', 'a1')
  })

  it('belongs to the directory that is made in the same place', () => {
    expect(savepoint(space, ['run', '-q', '--', 'sh', '-c', 'echo a2 > a'])).toMatchObject({ status: 0 })
    expect(allTargets(space.home)).toMatchObject([{ identity: { ino: String(statSync(space.dir).ino) } }])
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('a')).toBe('a1')
  })

  it('and to no third one, once there is one', () => {
    expect(savepoint(space, ['snapshot', '-q']).status).toBe(0)
    renameSync(space.dir, join(space.base, 'kept'))
    mkdirSync(space.dir)
    const { status, stderr } = savepoint(space, ['run', '-t', space.dir, '--', 'true'], { cwd: space.base })
    expect({ status, stderr }).toMatchObject({ status: 125, stderr: expect.stringContaining('has taken its place') })
  })
})
