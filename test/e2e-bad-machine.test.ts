/** Files, disk, store or target are not as they should be: the user reads what to do next, and nothing is lost. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
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
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import { canMount } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { take, refusedAs: refused } = dialogue(() => space)

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
      /^savepoint: Cannot capture: fewer than .* would stay free .*min_free_bytes\)\n {2}hint: .*Rolling back still works/,
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

describe('a limit on the size of files (ulimit -f) is named, and nothing is called damaged', () => {
  const limited = (kib: number, args: string[]) =>
    spawnSync('bash', ['-c', `ulimit -f ${kib}; exec "$@"`, 'bash', ...builtCommand, ...args], {
      ...{ cwd: space.dir, env: space.env, encoding: 'utf8' },
    })
  const named =
    /^savepoint: Cannot .*no file may be larger than \d+ bytes here \(ulimit -f\)\)?\n {2}hint: .*Raise that limit/

  it.each([1, 8, 64])('%i KiB', kib => {
    space.write('big', noise(1 << 20, 1))
    savepoint(space, ['snapshot', '-m', 'before'])
    space.write('big', noise(1 << 20, 2))
    const result = limited(kib, ['snapshot'])
    expect(result.stderr).toMatch(named)
    expect(result.status).toBe(1)
    expect(savepoint(space, ['snapshot']).status).toBe(0)
  })

  it.each([1, 8, 64])('also where there is nothing yet: %i KiB', kib => {
    expect(limited(kib, ['snapshot']).stderr).toMatch(named)
    expect(savepoint(space, ['snapshot']).status).toBe(0)
  })
})

it('packs that are gone as a whole: 14 and what to do, and --repair makes a place for new ones', () => {
  take('-m', 'lost')
  rmSync(join(space.home, 'store/packs'), { recursive: true })
  space.write('a.txt', 'two\n')
  const refusal = savepoint(space, ['snapshot'])
  expect(refusal).toMatchObject({ status: 14, stdout: '' })
  expect(refusal.stderr).toMatch(
    /Cannot write to the store: .*packs is missing\n {2}hint: .*`savepoint verify --repair`/,
  )
  expect(savepoint(space, ['verify'])).toMatchObject({
    status: 14,
    stdout: expect.stringMatching(/^pack \w+\.pack is missing\n(.*\n)+To repair: /),
  })
  expect(savepoint(space, ['verify', '--repair'])).toMatchObject({ status: 14, stderr: '' })
  take('-m', 'new')
  space.write('a.txt', 'three\n')
  expect(savepoint(space, ['rollback', 'new']).status).toBe(0)
  expect(space.read('a.txt')).toBe('two\n')
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
          '  hint: If it was deleted: `savepoint rollback SNAP -t BASE/work` makes it again (`savepoint log -t BASE/work` lists the snapshots)\n',
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

  it('closed by its mode: every verb that must look into it names the chmod, and that works', () => {
    giveToUser(space)
    expect(savepointAsUser(space, ['snapshot', '-t', space.dir]).status).toBe(0)
    chmodSync(space.dir, 0)
    const verbs = [['status'], ['changes'], ['diff'], ['snapshot'], ['coverage', 'a.txt']]
    for (const verb of verbs) {
      const { stderr, status } = savepointAsUser(space, [...verb, '-t', space.dir])
      expect([verb, status, stderr]).toEqual([
        verb,
        expect.toBeOneOf([1, 2]),
        expect.stringContaining(`\n  hint: Give yourself access: chmod u+rwx ${space.dir}\n`),
      ])
    }
    // A restore opens what is its owner's for a moment, and so does the look that tells what it would do.
    for (const dry of [['--dry-run'], []])
      expect(savepointAsUser(space, ['revert', 'a.txt', ...dry, '-t', space.dir]).status).toBe(0)
    expect(statSync(space.dir).mode & 0o777).toBe(0)
    const history = savepointAsUser(space, ['history', 'a.txt', '-t', space.dir])
    expect(history.stdout).toContain('\na.txt: a directory above it does not let you look\n')
    expect(savepointAsUser(space, ['history', 'nothing', '-t', space.dir]).stderr).toContain(
      'no snapshot has it, and a directory above it does not let you look whether it exists\n',
    )
    shellAsUser(space, `chmod u+rwx '${space.dir}'`)
    expect(savepointAsUser(space, ['status', '-t', space.dir]).status).toBe(0)
    expect(savepointAsUser(space, ['history', 'a.txt', '-t', space.dir]).stdout).toMatch(/\na\.txt: \d+ B now\n/)
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
