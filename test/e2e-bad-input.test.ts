/** Whatever is wrong, the user reads what it is and what to do next, the exit code says the kind, and nothing is lost. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  builtCommand,
  giveToUser,
  savepoint,
  savepointAsUser,
  savepointJson,
  shellAsUser,
  steady,
} from './support/built-cli.ts'
import { canMount } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a.txt', 'one\n')
  space.write('src/b.txt', 'b\n')
})
afterEach(() => space.remove())

/** The error as text and as JSON: the same code, message and hint, and stdout stays empty. */
function refused(args: string[], status: number, code: string, text: string | RegExp) {
  const plain = savepoint(space, args)
  expect({ args, status: plain.status, stdout: plain.stdout }).toEqual({ args, status, stdout: '' })
  if (typeof text === 'string') expect(steady(plain.stderr, space)).toBe(text)
  else expect(plain.stderr).toMatch(text)
  const asJson = savepoint(space, ['--json', ...args])
  expect({ args, status: asJson.status, stdout: asJson.stdout }).toEqual({ args, status, stdout: '' })
  const { error } = JSON.parse(asJson.stderr.trim().split('\n').at(-1)!)
  expect(Object.keys(error)).toEqual(['code', 'message', 'hint', 'data'])
  expect(error.code).toBe(code)
  return error
}
const take = (...args: string[]): string => savepoint(space, ['snapshot', '-q', ...args]).stdout.trim()

describe('names that fit nothing, or too much', () => {
  beforeEach(() => void take('-m', 'stable'))

  it('unknown snapshot, tag, run, path: 12, with what was probably meant', () => {
    refused(
      ['rollback', 'stabel'],
      12,
      'snapshot.unknown',
      'savepoint: Cannot find snapshot "stabel": no id, tag or label of this timeline fits\n' +
        '  hint: Did you mean stable? `savepoint snapshots` lists all\n',
    )
    refused(['show', 'snap_zzzzzzzz'], 12, 'snapshot.unknown', /hint: /)
    refused(
      ['rollback', 'a.txt'],
      12,
      'snapshot.unknown',
      /\n {2}hint: To bring this file back: savepoint revert a\.txt\n$/,
    )
    refused(
      ['snapshots', 'run_zzzzzzzz'],
      12,
      'run.unknown',
      /Cannot find run "run_zzzzzzzz"\n {2}hint: `savepoint runs` lists them\n$/,
    )
    refused(['tag', '--delete', 'nothing'], 12, 'tag.unknown', /hint: /)
    refused(['history', 'nothing'], 12, 'path.unknown', /no snapshot has it, and it does not exist\n {2}hint: /)
    refused(['revert', 'nothing'], 12, 'path.unknown', /nothing/)
  })

  it('an ambiguous prefix: 12, and the candidates are listed', () => {
    const byPrefix = new Map<string, string[]>()
    for (let i = 0; i < 400; i++) {
      const id = take()
      const group = [...(byPrefix.get(id.slice(5, 7)) ?? []), id]
      byPrefix.set(id.slice(5, 7), group)
      if (group.length > 1) break
    }
    const [prefix, ids] = [...byPrefix].find(([, group]) => group.length > 1)!
    const error = refused(
      ['show', prefix],
      12,
      'snapshot.ambiguous',
      /^savepoint: Cannot tell which snapshot ".." is: it fits \d+\n {2}hint: Write more of the id: snap_/,
    )
    expect(error.data.matches).toEqual(expect.arrayContaining(ids))
    expect(savepoint(space, ['show', ids[0]!.slice(0, 12)]).status).toBe(0)
  })
})

describe('the command line', () => {
  it('unknown verb and flag: 2, with a suggestion and where to read more', () => {
    const usage = (args: string[], text: string) => refused(args, 2, 'usage', text)
    usage(
      ['snapshotz'],
      'savepoint: Cannot read the command line: unknown command "snapshotz"\n  hint: Did you mean snapshot? Try: savepoint --help\n',
    )
    usage(
      ['rolback', 'x'],
      'savepoint: Cannot read the command line: unknown command "rolback"\n  hint: Did you mean rollback? Try: savepoint --help\n',
    )
    usage(
      ['snapshots', '--limt', '3'],
      'savepoint: Cannot read the command line: unknown option "--limt"\n  hint: Did you mean --limit? Try: savepoint snapshots --help\n',
    )
    usage(
      ['snapshot', 'list'],
      'savepoint: Cannot read the command line: "list" is no run\n  hint: Did you mean savepoint snapshots? Try: savepoint snapshot --help\n',
    )
    usage(
      ['log', '-n', 'many'],
      'savepoint: Cannot read the command line: option "-n, --limit <n>" argument "many" is invalid. It must be a whole number from 1 up\n  hint: Try: savepoint log --help\n',
    )
    usage(
      ['run'],
      'savepoint: Cannot read the command line: missing required argument "command"\n  hint: Try: savepoint run --help\n',
    )
    usage(
      ['rollback'],
      'savepoint: Cannot roll back: no snapshot is named\n  hint: `savepoint log` shows them; `savepoint undo` takes back the last operation; `savepoint revert PATH` brings one file back\n',
    )
    expect(existsSync(space.home)).toBe(false)
  })

  it('paths outside the target: 2, nothing is read or written there', () => {
    take('-m', 'one')
    writeFileSync(join(space.base, 'outside'), 'outside')
    symlinkSync('..', space.at('up'))
    for (const path of ['../outside', '/etc/passwd', 'src/../../outside', join(space.base, 'outside')]) {
      for (const args of [
        ['revert', path],
        ['history', path],
        ['coverage', path],
        ['purge', path, '--yes'],
        ['show', 'one', path],
        ['rollback', 'one', '--', path],
        ['diff', '--', path],
      ]) {
        refused(
          args,
          2,
          'path.outside',
          /^savepoint: Cannot use .*: it lies outside the target\n {2}hint: The target is .*work\n$/,
        )
      }
    }
    for (const args of [
      ['revert', 'up/outside'],
      ['rollback', 'one', '--', 'up/outside'],
    ]) {
      expect(savepoint(space, args).status).not.toBe(0)
    }
    expect(readFileSync(join(space.base, 'outside'), 'utf8')).toBe('outside')
  })

  it('$HOME and / are refused without --force', () => {
    refused(
      ['snapshot', '-t', space.userHome],
      1,
      'target.refused',
      /^savepoint: Cannot protect .*user: it is your whole home directory\n {2}hint: .*--force/,
    )
    refused(['snapshot', '-t', '/'], 1, 'target.refused', /^savepoint: Cannot protect \/: it is the whole machine\n/)
    expect(savepoint(space, ['snapshot', '-t', space.userHome, '--force']).status).toBe(0)
  })
})

describe('the configuration', () => {
  const write = (text: string) => space.write('savepoint.yaml', text)

  it('an unknown key: 2, with file, line, column and the right one; nothing is done', () => {
    take()
    write('snapshots:\n  triggers:\n    # a remark\n    idle_treshold_seconds: 3\n')
    refused(
      ['status'],
      2,
      'config.invalid',
      'savepoint: Cannot use BASE/work/savepoint.yaml:4:5: "idle_treshold_seconds" is not a key of snapshots.triggers\n' +
        '  hint: Did you mean snapshots.triggers.idle_threshold_seconds?\n',
    )
    expect(savepoint(space, ['run', '--', 'touch', 'made']).status).not.toBe(0)
    expect(existsSync(space.at('made'))).toBe(false)
    write('snapshots:\n  max_file_bytes: lots\n')
    refused(['status'], 2, 'config.invalid', /savepoint\.yaml:2:\d+: .*\n {2}hint: /)
    write('snapshots:\n  retention:\n    auto_max: -1\n')
    refused(['snapshot'], 2, 'config.invalid', /savepoint\.yaml:3:\d+: /)
  })

  it('a half-written file: 2, with the place where it ends', () => {
    for (const half of [
      'snapshots:\n  exclude:\n    additional: ["a", ',
      'snapshots:\n  retention: {auto_max: ',
      'snapshots:\n\tbackend: auto\n',
      'snapshots: [\n',
    ]) {
      write(half)
      refused(['snapshot'], 2, 'config.invalid', /^savepoint: Cannot use .*savepoint\.yaml:\d+:\d+: .*\n {2}hint: /)
    }
    write('')
    expect(savepoint(space, ['snapshot']).status).toBe(0)
  })

  it('the file of the home and the variables are checked, too', () => {
    mkdirSync(space.home)
    writeFileSync(join(space.home, 'config.yaml'), 'snapshot: {}\n')
    refused(
      ['snapshot'],
      2,
      'config.invalid',
      /config\.yaml:1:1: "snapshot" is not a key.*\n {2}hint: Did you mean snapshots\?/,
    )
    rmSync(join(space.home, 'config.yaml'))
    for (const [name, value] of [
      ['SAVEPOINT_BACKEND', 'zsf'],
      ['SAVEPOINT_LOCK_WAIT_MS', 'abc'],
    ] as const) {
      const wrong = savepoint(space, ['snapshot'], { env: { ...space.env, [name]: value } })
      expect(wrong).toMatchObject({ status: 2, stderr: expect.stringMatching(new RegExp(`${name}.*\n {2}hint: `)) })
    }
  })
})

describe('files that cannot be read', () => {
  it('as an ordinary user: PARTIAL, listed, left alone by a rollback', () => {
    space.write('secret', 'mine\n')
    space.write('locked/inside', 'x\n')
    giveToUser(space)
    chmodSync(space.at('secret'), 0)
    chmodSync(space.at('locked'), 0)
    const taken = savepointAsUser(space, ['snapshot', '-m', 'first'])
    expect({ ...taken, stdout: steady(taken.stdout, space) }).toEqual({
      status: 3,
      signal: null,
      stdout:
        'snap_ID (first)  SIZE  2 files, SIZE  PARTIAL\nPARTIAL: 2 paths not captured\n  locked (unreadable)\n  secret (unreadable)\n',
      stderr: '',
    })
    for (const option of ['-q', '--json']) expect(savepointAsUser(space, ['snapshot', option]).status).toBe(3)
    expect(savepointAsUser(space, ['snapshots']).stdout).toContain('first PARTIAL\n')
    expect(savepointAsUser(space, ['show']).stdout).toContain('  secret (unreadable)\n')
    expect(savepointAsUser(space, ['coverage', 'secret']).stdout).toMatch(/^secret: not protected, it cannot be read\n/)
    expect(savepointAsUser(space, ['coverage', 'locked/inside']).stdout).toBe(
      'locked/inside cannot be looked at: a directory above it is closed to you\nNo snapshot has a version of it\n',
    )
    expect(JSON.parse(savepointAsUser(space, ['coverage', 'locked/inside', '--json']).stdout)).toMatchObject({
      exists: null,
      covered: false,
      reason: 'unreadable',
    })
    expect(JSON.parse(savepointAsUser(space, ['snapshots', '--json']).stdout)[0]).toMatchObject({
      partial: true,
      stats: { skipped: 2 },
    })
    const run = savepointAsUser(space, ['run', '--', 'sh', '-c', 'echo x > a.txt'])
    // Not 3: the code of `run` is the command's.
    expect(run.status).toBe(0)
    expect(savepointAsUser(space, ['run', '--', 'false']).status).toBe(1)
    expect(run.stderr).toMatch(
      /^savepoint: protecting .*; PARTIAL: 2 paths not captured, see savepoint show snap_\w+\)\n/,
    )
    expect(savepointAsUser(space, ['rollback', 'first'])).toMatchObject({ status: 0 })
    chmodSync(space.at('secret'), 0o600)
    chmodSync(space.at('locked'), 0o700)
    expect([space.read('a.txt'), space.read('secret'), space.read('locked/inside')]).toEqual(['one\n', 'mine\n', 'x\n'])
  })

  it('a home that cannot be written: 1, with how to choose another', () => {
    giveToUser(space)
    expect(shellAsUser(space, 'mkdir "$SAVEPOINT_HOME"; chmod 500 "$SAVEPOINT_HOME"').status).toBe(0)
    const result = savepointAsUser(space, ['snapshot'])
    expect(result).toMatchObject({ status: 1, stdout: '' })
    expect(result.stderr).toMatch(
      /^savepoint: Cannot use .*store home.*\n {2}hint: Set SAVEPOINT_HOME to a directory that you can write to\n$/,
    )
  })

  it('somebody else’s file in the way of a rollback is left alone, listed, and 3', () => {
    giveToUser(space)
    savepointAsUser(space, ['snapshot', '-m', 'first'])
    shellAsUser(space, 'echo two > src/b.txt; echo two > a.txt; chmod 500 src')
    const result = savepointAsUser(space, ['rollback', 'first'])
    expect([0, 3]).toContain(result.status)
    expect(space.read('a.txt')).toBe('one\n')
    if (result.status === 3) expect(result.stdout).toContain('src/b.txt: ')
    else expect(space.read('src/b.txt')).toBe('b\n')
  })
})

describe('a full disk', () => {
  it.skipIf(!canMount)(
    `1, says so, keeps what there is, and goes on when there is room${canMount ? '' : ' [needs a kernel that lets root mount]'}`,
    () => {
      mkdirSync(space.home)
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', space.home]).status).toBe(0)
      try {
        writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
        expect(savepoint(space, ['snapshot', '-m', 'first']).status).toBe(0)
        space.write('a.txt', 'two\n')
        space.write('large', noise(8_000_000, 1))
        const full = savepoint(space, ['snapshot'])
        expect(full).toMatchObject({ status: 1, stdout: '' })
        expect(full.stderr).toMatch(/^savepoint: Cannot .*\n {2}hint: /)
        expect(JSON.parse(savepoint(space, ['snapshot', '--json']).stderr).error).toMatchObject({ code: 'disk.full' })
        const run = savepoint(space, ['run', '--', 'touch', 'made'])
        expect(run).toMatchObject({
          status: 125,
          stderr: expect.stringMatching(/Cannot start the command: .*full.*\n {2}hint: /),
        })
        expect(existsSync(space.at('made'))).toBe(false)
        expect(savepointJson(space, ['snapshots'])).toHaveLength(1)
        expect(savepoint(space, ['verify']).status).toBe(0)
        rmSync(space.at('large'))
        expect(savepoint(space, ['rollback', 'first'])).toMatchObject({ status: 0 })
        expect(space.read('a.txt')).toBe('one\n')
        expect(savepoint(space, ['undo']).status).toBe(0)
        expect(space.read('a.txt')).toBe('two\n')
      } finally {
        spawnSync('umount', [space.home])
      }
    },
  )

  it('below the floor of snapshots.min_free_bytes: captures stop and say why; going back still works', () => {
    take('-m', 'first')
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 4000000 GiB\n')
    refused(
      ['snapshot'],
      1,
      'disk.full',
      /^savepoint: Cannot capture: .* are free, and snapshots\.min_free_bytes keeps .*\n {2}hint: .*Rolling back still works/,
    )
    space.write('a.txt', 'two\n')
    expect(savepoint(space, ['rollback', 'first']).status).toBe(0)
    expect(space.read('a.txt')).toBe('one\n')
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('a.txt')).toBe('two\n')
  })
})

describe('a damaged store', () => {
  const packs = () => join(space.home, 'store/packs')
  const largestPack = () =>
    readdirSync(packs())
      .map(name => join(packs(), name))
      .sort((a, b) => statSync(b).size - statSync(a).size)[0]!

  /** Flips one byte in the middle of the content of `big`. */
  function damage(): string {
    space.write('big', noise(3_000_000, 7))
    take('-m', 'good')
    const pack = largestPack()
    chmodSync(pack, 0o600)
    const bytes = readFileSync(pack)
    bytes[Math.floor(bytes.length / 2)]! ^= 0xff
    writeFileSync(pack, bytes)
    return pack
  }

  it('14: verify names the file and its snapshot; rollback refuses before it writes anything', () => {
    take('-m', 'earlier')
    damage()
    space.write('big', 'other\n')
    space.write('a.txt', 'two\n')
    const verified = savepoint(space, ['verify'])
    expect(verified).toMatchObject({ status: 14, stderr: '' })
    expect(verified.stdout).toMatch(/snap_\w+ has lost 1 path\n {2}big\n {2}in 1 snapshot: snap_/)
    expect(verified.stdout).toMatch(/\n\d problems found: .*\nTo repair: savepoint verify --repair\n$/)
    const { ok, problems } = savepointJson(space, ['verify'])
    expect({ ok, paths: problems.flatMap((problem: { paths: string[] }) => problem.paths) }).toEqual({
      ok: false,
      paths: ['big'],
    })
    const before = imageOf(space.dir, { untouched: true })
    const rollback = savepoint(space, ['rollback', 'good'])
    expect(rollback).toMatchObject({ status: 14, stdout: '' })
    expect(rollback.stderr).toMatch(/big/)
    expect(rollback.stderr).toMatch(/\n {2}hint: .*savepoint verify/)
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
    expect(savepoint(space, ['show', 'good', 'big'])).toMatchObject({ status: 14, stdout: '' })
    // What is whole still works.
    expect(savepoint(space, ['log']).status).toBe(0)
    expect(savepoint(space, ['rollback', 'good', '--', 'a.txt']).status).toBe(0)
    expect(space.read('a.txt')).toBe('one\n')
  })

  it('verify --repair and a snapshot: what the live files still have is stored again, for old snapshots, too', () => {
    damage()
    const content = readFileSync(space.at('big'))
    const repaired = savepoint(space, ['verify', '--repair'])
    expect(repaired).toMatchObject({ status: 14, stdout: expect.stringMatching(/^Repaired: the index was rebuilt/) })
    expect(repaired.stdout).toMatch(/\nTo store again what the live files still have: savepoint snapshot\n$/)
    expect(savepoint(space, ['snapshot']).status).toBe(0)
    expect(savepoint(space, ['verify']).stdout).not.toContain('has lost')
    rmSync(space.at('big'))
    expect(savepoint(space, ['revert', 'big', '--from', 'good']).status).toBe(0)
    expect(readFileSync(space.at('big')).equals(content)).toBe(true)
  })

  it('a pack that is gone: 14, and other commands say what they can', () => {
    space.write('big', noise(3_000_000, 7))
    take('-m', 'good')
    rmSync(largestPack())
    rmSync(space.at('big'))
    const rollback = savepoint(space, ['rollback', 'good'])
    expect(rollback).toMatchObject({ status: 14, stdout: '' })
    expect(rollback.stderr).toMatch(/\n {2}hint: /)
    expect(existsSync(space.at('a.txt'))).toBe(true)
    expect(savepoint(space, ['verify']).status).toBe(14)
    expect(savepoint(space, ['log']).status).toBe(0)
  })
})

describe('a second writer', () => {
  it('11 with the number of the process that is at work; looking works meanwhile; afterwards both are done', async () => {
    take('-m', 'first')
    for (let i = 0; i < 40; i++) space.write(`large/${i}`, noise(2_000_000, i))
    const [program, ...args] = builtCommand
    const first = spawn(program!, [...args, 'snapshot', '-m', 'slow'], {
      cwd: space.dir,
      env: space.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = once(first, 'exit')
    await lockHeldBy(first.pid!)
    first.kill('SIGSTOP')
    try {
      const env = { ...space.env, SAVEPOINT_LOCK_WAIT_MS: '200' }
      const second = savepoint(space, ['snapshot'], { env })
      expect(second).toMatchObject({ status: 11, stdout: '' })
      expect(second.stderr).toMatch(
        new RegExp(`^savepoint: Cannot .*: process ${first.pid} is at work \\(.*\\)\\n {2}hint: .*ps -p ${first.pid}`),
      )
      expect(JSON.parse(savepoint(space, ['snapshot', '--json'], { env }).stderr).error).toMatchObject({
        code: 'busy',
        data: { holder: { pid: first.pid } },
      })
      expect(savepoint(space, ['run', '--', 'touch', 'made'], { env })).toMatchObject({
        status: 125,
        stderr: expect.stringContaining(`process ${first.pid}`),
      })
      expect(existsSync(space.at('made'))).toBe(false)
      for (const verb of ['log', 'snapshots', 'operations']) expect(savepoint(space, [verb], { env }).status).toBe(0)
      expect(savepoint(space, ['status'], { env }).stdout).toContain(`Busy: process ${first.pid} (`)
    } finally {
      first.kill('SIGCONT')
    }
    expect(await ended).toEqual([0, null])
    expect(savepoint(space, ['status']).stdout).not.toContain('Busy')
    expect(savepointJson(space, ['snapshots']).map((one: { label: string }) => one.label)).toEqual(['slow', 'first'])
  })

  it('a process that was killed while it wrote holds nobody up', async () => {
    take('-m', 'first')
    for (let i = 0; i < 40; i++) space.write(`large/${i}`, noise(2_000_000, i))
    const [program, ...args] = builtCommand
    const first = spawn(program!, [...args, 'snapshot'], { cwd: space.dir, env: space.env, stdio: 'ignore' })
    const ended = once(first, 'exit')
    await lockHeldBy(first.pid!)
    first.kill('SIGKILL')
    await ended
    expect(savepoint(space, ['snapshot', '-m', 'after'])).toMatchObject({ status: 0, stderr: '' })
    expect(savepoint(space, ['verify']).status).toBe(0)
    expect(savepointJson(space, ['snapshots'])).toHaveLength(2)
  })

  async function lockHeldBy(pid: number): Promise<void> {
    const timelines = join(space.home, 'timelines')
    const [id] = readdirSync(timelines)
    for (let i = 0; i < 3000; i++) {
      if (readFileSync(join(timelines, id!, 'lock'), 'utf8').startsWith(`${pid} `)) return
      await pause(3)
    }
    throw new Error(`process ${pid} never took the lock`)
  }
})

describe('a target that is not what it was', () => {
  beforeEach(() => void take('-m', 'first'))
  const outside = () => ({ cwd: space.base })

  it('vanished: 1, with the command that makes it again, and that works', () => {
    const before = imageOf(space.dir)
    rmSync(space.dir, { recursive: true })
    const args = ['-t', space.dir]
    for (const verb of ['status', 'snapshot', 'diff']) {
      const result = savepoint(space, [verb, ...args], outside())
      expect(result).toMatchObject({ status: 1, stdout: '' })
      expect(steady(result.stderr, space)).toBe(
        'savepoint: Cannot open BASE/work: the directory does not exist\n' +
          '  hint: If it was deleted: savepoint rollback SNAP -t BASE/work makes it again (savepoint log -t BASE/work lists the snapshots)\n',
      )
    }
    expect(savepoint(space, ['run', ...args, '--', 'true'], outside()).status).toBe(125)
    expect(existsSync(space.dir)).toBe(false)
    expect(savepoint(space, ['log', ...args], outside())).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('first'),
    })
    expect(savepoint(space, ['rollback', 'first', ...args], outside())).toMatchObject({
      status: 0,
      stderr: 'savepoint: the target directory was gone and is made again\n',
    })
    expect(differences(before, imageOf(space.dir))).toEqual([])
  })

  it('replaced by another directory: 1, nothing is written, and --force takes it over', () => {
    renameSync(space.dir, join(space.base, 'old'))
    mkdirSync(space.dir)
    space.write('precious')
    const before = imageOf(space.dir, { untouched: true })
    for (const args of [['status'], ['snapshot'], ['diff'], ['rollback', 'first'], ['revert', 'a.txt']]) {
      refused(
        args,
        1,
        'target.replaced',
        'savepoint: Cannot use BASE/work: another directory has taken its place\n' +
          '  hint: If this is meant to be the same workspace: savepoint snapshot --force makes the timeline belong to the new directory\n',
      )
    }
    expect(savepoint(space, ['run', '--', 'touch', 'made']).status).toBe(125)
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
    expect(savepoint(space, ['snapshot', '--force']).status).toBe(0)
    expect(savepoint(space, ['rollback', 'first']).status).toBe(0)
    expect([space.read('a.txt'), space.read('precious')]).toEqual(['one\n', undefined])
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('precious')).toBe('precious\n')
  })

  it('moved: its timeline moves with it, and says so', () => {
    const place = join(space.base, 'moved')
    renameSync(space.dir, place)
    const result = savepoint(space, ['status'], { cwd: place })
    expect(result).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/the target was moved from .*work to .*moved; its timeline moves with it/),
    })
    expect(savepoint(space, ['log'], { cwd: place })).toMatchObject({ status: 0, stderr: '' })
  })
})
