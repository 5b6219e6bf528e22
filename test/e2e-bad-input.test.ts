/** Whatever is wrong with what the user wrote, he reads what it is and what to do next, and the exit code says the kind. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { quoteWord } from '../src/model/shell-quote.ts'
import { builtCommand, giveToUser, savepoint, savepointAsUser } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { take, refusedAs: refused } = dialogue(() => space)

it('a word where nothing is protected yet: a label, most likely', () => {
  refused(
    ['snapshot', 'my label'],
    10,
    'timeline.none',
    'savepoint: Cannot find run "my label": nothing is protected here yet\n  hint: For a label: savepoint snapshot -m \'my label\'\n',
  )
})

it('a directory whose path is longer than the system takes: 13, in few words', () => {
  const deep = 'd'.repeat(250)
  const cli = builtCommand.map(quoteWord).join(' ')
  const script = `i=0; while [ $i -lt 20 ]; do mkdir ${deep}; cd ${deep} 2>/dev/null; i=$((i + 1)); done; ${cli} run -- true`
  const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: space.dir, env: space.env, encoding: 'utf8' })
  expect(stderr).toMatch(
    /Cannot use \/.{10,80}…: its path is too long \(\d{4} bytes\)\n {2}hint: Say it in a directory further up/,
  )
  expect([status, stderr.length < 400]).toEqual([125, true])
})

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
    refused(['snapshot', 'my label'], 12, 'run.unknown', /hint: For a label: savepoint snapshot -m 'my label'\. /)
    refused(['tag', '--delete', 'nothing'], 12, 'tag.unknown', /hint: /)
    refused(['history', 'nothing'], 12, 'path.unknown', /no snapshot has it, and it does not exist\n {2}hint: /)
    refused(['revert', 'nothing'], 12, 'path.unknown', /nothing/)
  })

  it('what was typed is quoted without what steers a terminal', () => {
    take()
    const name = 'x\x1b[31m\u009b'
    refused(['show', name], 12, 'snapshot.unknown', /Cannot find snapshot "x\\x1b\[31m\\x9b"/)
    space.write(name, 'one')
    take()
    const { stdout } = savepoint(space, ['history', name])
    expect(stdout).toContain("revert 'x\\x1b[31m\\xc2\\x9b' --from SNAPSHOT")
    expect(stdout).not.toMatch(/[\x1b\u009b]/)
  })

  it('a prefix that is too short: 12, and the candidates are listed', () => {
    const ids = [take(), take()]
    const error = refused(
      ['show', 'snap_'],
      12,
      'snapshot.ambiguous',
      /^savepoint: Cannot tell which snapshot "snap_" is: it is too short for the beginning of an id\n {2}hint: Write at least 2 characters after snap_: snap_/,
    )
    expect(error.data.matches).toEqual(expect.arrayContaining(ids))
    refused(['rollback', ids[0]!.slice(5, 6)], 12, 'snapshot.ambiguous', /hint: Write at least 4 characters: snap_/)
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

  it('a path of the target, written from elsewhere: says where paths start, and how to write it', () => {
    take()
    const { status, stderr } = savepoint(space, ['-t', 'work', 'revert', 'src/b.txt'], { cwd: space.base })
    const [target, base] = [space.dir, space.base]
    expect([status, stderr]).toEqual([
      2,
      'savepoint: Cannot use src/b.txt: it lies outside the target\n' +
        `  hint: The target is ${target}, and paths start at the current directory, ${base}: write ${target}/src/b.txt\n`,
    ])
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

describe('a place to write to', () => {
  beforeEach(() => void take('-m', 'first'))
  const hint = '\n {2}hint: Name a directory that does not exist yet'

  it('that can hold no directory: said at once, also below /proc, where Node would try for ever', () => {
    const below = { timeout: 30_000, killSignal: 'SIGKILL' } as const
    const { status, stderr } = savepoint(space, ['rollback', 'first', '--to', '/proc/x/y'], below)
    expect({ status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(`^savepoint: Cannot restore to /proc/x/y: nothing can be made there${hint}`),
    })
    refused(['rollback', 'first', '--to', '/dev/null'], 2, 'usage', new RegExp(`null: it is not a directory.*${hint}`))
    refused(['rollback', 'first', '--to', join(space.home, 'store', 'x')], 2, 'usage', /belongs to Savepoint itself/)
    refused(['rollback', 'first', '--to', 'a.txt/x'], 2, 'usage', new RegExp(hint))
  })

  it('that is in the store by a link: none of it is written', () => {
    const before = readdirSync(space.home)
    symlinkSync(space.home, join(space.base, 'link'))
    symlinkSync(join(space.home, 'new'), join(space.base, 'dangling'))
    for (const to of ['../link/x', '../link/x/y', '../link/store/clones', '../dangling', '../dangling/x'])
      refused(['rollback', 'first', '--to', to], 2, 'usage', /belongs to Savepoint itself/)
    expect(readdirSync(space.home)).toEqual(before)
  })

  it('that is not this user’s', () => {
    giveToUser(space)
    mkdirSync(join(space.base, 'closed'), { mode: 0o555 })
    const { status, stderr } = savepointAsUser(space, ['rollback', 'first', '--to', '../closed/a/b'])
    expect({ status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(`^savepoint: Cannot restore to .*closed/a/b: permission denied${hint}`),
    })
    const exported = savepointAsUser(space, ['export', 'first', '../closed/x.tar'])
    expect(exported.stderr).toMatch(
      /: permission denied\n {2}hint: Name a file in a directory that you may write to\n$/,
    )
  })

  it('or to read from, that does not exist', () => {
    refused(
      ['export', 'first', 'no/x.tar'],
      1,
      'io.failed',
      /no such file or directory\n {2}hint: .*make the directory/,
    )
    refused(['import', 'nothing.tar'], 1, 'io.failed', /no such file or directory\n {2}hint: Look at how it is written/)
    refused(['snapshot', '-m', ''], 2, 'name.invalid', /\n {2}hint: For example: /)
    expect(savepoint(space, ['run', '-q', '--', 'no-such']).stderr).toMatch(/command not found\n {2}hint: Look at how/)
  })
})

describe('the configuration', () => {
  const write = (text: string) => space.write('savepoint.yaml', text)

  it('an unknown key: 2, with file, line, column and the right one; nothing is done', () => {
    take()
    write('snapshots:\n  triggers:\n    # a remark\n    idle_treshold_seconds: 3\n')
    refused(
      ['snapshot'],
      2,
      'config.invalid',
      'savepoint: Cannot use BASE/work/savepoint.yaml:4:5: "idle_treshold_seconds" is not a key of snapshots.triggers\n' +
        '  hint: Did you mean snapshots.triggers.idle_threshold_seconds?\n',
    )
    expect(savepoint(space, ['run', '--', 'touch', 'made']).status).not.toBe(0)
    expect(existsSync(space.at('made'))).toBe(false)
    write('snapshots:\n  max_file_bytes: lots\n')
    refused(['coverage', 'a.txt'], 2, 'config.invalid', /savepoint\.yaml:2:\d+: .*\n {2}hint: /)
    write('snapshots:\n  retention:\n    auto_max: -1\n')
    refused(['snapshot'], 2, 'config.invalid', /savepoint\.yaml:3:\d+: /)
  })

  it('a wrong file does not keep anybody from looking: the verbs that look go on with a remark', () => {
    const id = take()
    write('snapshots:\n  bakend: cas\n')
    for (const verb of ['status', 'log']) {
      const { status, stdout, stderr } = savepoint(space, [verb])
      expect([verb, status, stdout]).toEqual([verb, 0, expect.stringContaining(id)])
      expect(stderr).toMatch(
        /^savepoint: going on without savepoint\.yaml: Cannot use .*savepoint\.yaml:2:3: "bakend" is not a key/,
      )
    }
  })

  it('a target that is a file: 1, and it says so', () => {
    refused(['snapshot', '-t', 'a.txt'], 1, 'target.missing', /Cannot protect .*a\.txt: it is not a directory\n/)
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
