/** `run`: the exit code is the command's, what it did can be taken back, and what others did is not touched. */
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'a1')
  space.write('src/b', 'b1')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })

describe('the summary', () => {
  it('counts what was protected and what went in the same way: files, and empty directories beside them', () => {
    space.sh('mkdir -p empty/inner other; for i in $(seq 12); do echo > src/$i; done')
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', 'rm -r *'])
    expect(stderr).toMatch(/protecting .*, 14 files\)\n/)
    expect(stderr).toMatch(/: exit 0, .*; 16 deleted \(2 empty directories included\)\n/)
    expect(runCli(space, ['undo']).stdout).toContain('\nFiles: 16 created (2 empty directories included)\n')
  })

  it('a directory that went as a whole is one line, when there would be more than ten', () => {
    space.sh(
      'mkdir -p whole/deep partly; for i in $(seq 40); do echo > whole/deep/$i; done; echo > partly/x; echo > partly/y',
    )
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', 'rm -r whole partly/x; mkdir new; echo > new/1'])
    expect(stderr).toContain('\n  A new/1\n  D partly/x\n  D whole/ (40 files)\nTo undo')
  })
})

describe('how the command ends', () => {
  it('exit codes and deaths by signal are handed through, and recorded', async () => {
    expect(await run('exit 0')).toMatchObject({ exitCode: 0, signal: undefined })
    expect(await run('exit 7')).toMatchObject({ exitCode: 7, signal: undefined })
    expect(await run('kill -KILL $$')).toMatchObject({ exitCode: 137, signal: 'SIGKILL' })
    expect(await run('kill -TERM $$')).toMatchObject({ exitCode: 143, signal: 'SIGTERM' })
    const recorded = savepoint.runs().map(({ exitCode, signal, endedAt }) => [exitCode, signal, endedAt !== undefined])
    expect(recorded.sort()).toEqual(
      [
        [0, undefined, true],
        [7, undefined, true],
        [undefined, 'SIGKILL', true],
        [undefined, 'SIGTERM', true],
      ].sort(),
    )
  })

  it('127, 126 and 125 say why it did not start, and the run is over', async () => {
    await expect(savepoint.run({ command: ['no-such-program'] })).rejects.toMatchObject({
      code: 'command.not-found',
      exitCode: 127,
    })
    space.write('plain', 'not a program')
    await expect(savepoint.run({ command: ['./plain'] })).rejects.toMatchObject({
      code: 'command.not-executable',
      exitCode: 126,
    })
    mkdirSync(space.at('dir'))
    await expect(savepoint.run({ command: ['./dir'] })).rejects.toMatchObject({ exitCode: 126 })
    await expect(savepoint.run({ command: [] })).rejects.toMatchObject({ code: 'usage', exitCode: 2 })
    expect(savepoint.runs().map(({ exitCode, endedAt }) => [exitCode, endedAt !== undefined])).toEqual(
      expect.arrayContaining([
        [127, true],
        [126, true],
      ]),
    )
    expect(savepoint.operations()).toEqual([])
  })

  it('the command line passes them on, and keeps stdout for the command', () => {
    const ok = runCli(space, ['run', '--', 'sh', '-c', 'echo out; echo err >&2; echo x > made'])
    expect(ok).toMatchObject({ status: 0, stdout: 'out\n' })
    expect(ok.stderr).toMatch(/err\n.*made.*To undo: savepoint undo/s)
    expect(runCli(space, ['run', 'sh', '-c', 'exit 7']).status).toBe(7)
    expect(runCli(space, ['run', '--', 'sh', '-c', 'kill -KILL $$']).status).toBe(137)
    // As a shell sees it without us.
    expect(runCli(space, ['run', '--', 'sh', '-c', 'kill -TERM $$']).signal).toBe('SIGTERM')
    expect(runCli(space, ['run', '--', './nothing']).status).toBe(127)
    expect(runCli(space, ['run', '--', './a']).status).toBe(126)
  })
})

describe('the state before', () => {
  const floor = 'snapshots:\n  min_free_bytes: 4000000 GiB\n'

  it('is a condition: when it cannot be captured, the command is not started', async () => {
    space.write('savepoint.yaml', floor)
    savepoint = await space.open()
    await expect(run('echo x > made')).rejects.toMatchObject({
      code: 'command.failed-to-start',
      exitCode: 125,
      hint: expect.stringContaining('--unprotected'),
    })
    expect(existsSync(space.at('made'))).toBe(false)
    expect(runCli(space, ['run', '--', 'touch', 'made']).status).toBe(125)
    expect(existsSync(space.at('made'))).toBe(false)
  })

  it('may be renounced, and then it is said', async () => {
    space.write('savepoint.yaml', floor)
    savepoint = await space.open()
    const result = await savepoint.run({ command: ['sh', '-c', 'echo x > made; exit 3'], unprotected: true })
    expect(result).toMatchObject({ exitCode: 3, before: undefined, after: undefined })
    expect(existsSync(space.at('made'))).toBe(true)
    expect(space.notices).toContainEqual(expect.stringContaining('NOT protected'))
    await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
  })

  it('holds what changed since the last snapshot', async () => {
    await savepoint.snapshot()
    space.write('a', 'edited a moment ago')
    await run('echo spoiled > a')
    await savepoint.undo()
    expect(space.read('a')).toBe('edited a moment ago')
  })
})

describe('undo', () => {
  it('right after a run takes all of it back; redo brings it again', async () => {
    space.sh('git init -q -b main .; git add .; git commit -qm one; mkdir empty; ln -s a link; chmod 600 a')
    const before = imageOf(space.dir)
    const result = await run(
      'rm -rf .git src link empty; echo x > a; chmod 755 a; mkdir -p new/dir; echo y > new/dir/f',
    )
    expect(result.counts.deleted).toBeGreaterThan(2)
    const after = imageOf(space.dir)
    const { restore, operation } = await savepoint.undo()
    expect([operation.kind, restore!.leftAlone]).toEqual(['run', []])
    expect(differences(before, imageOf(space.dir))).toEqual([])
    await savepoint.redo()
    expect(differences(after, imageOf(space.dir))).toEqual([])
  })

  it('R5: keeps a hand edit made after the run, reports it, and is incomplete', async () => {
    await run('echo agent > a; echo agent > src/b; echo agent > made')
    space.write('a', 'by hand')
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual([{ path: 'a', why: 'edited' }])
    expect([space.read('a'), space.read('src/b'), space.read('made')]).toEqual(['by hand', 'b1', undefined])
    expect(savepoint.read(restore!.safety!.id, 'a').toString()).toBe('by hand')
  })

  it('R5: the same on the command line, with exit code 3 and the path', async () => {
    runCli(space, ['run', '--', 'sh', '-c', 'echo agent > a; echo agent > src/b; echo agent > made; rm -r src'])
    writeFileSync(space.at('made'), 'by hand')
    space.write('src/mine', 'by hand')
    const { status, stdout, stderr } = runCli(space, ['undo'])
    expect(status).toBe(3)
    expect(stdout + stderr).toContain('made')
    expect([space.read('a'), space.read('made'), space.read('src/b'), space.read('src/mine')]).toEqual([
      'a1',
      'by hand',
      'b1',
      'by hand',
    ])
  })

  it('R7: of a run that changed nothing writes nothing at all', async () => {
    space.sh('git init -q .; git add .; git commit -qm one; mkfifo pipe; ln a hard')
    await savepoint.snapshot()
    const before = imageOf(space.dir, { untouched: true })
    const { counts, changes } = await run('cat a src/b > /dev/null; git log > /dev/null')
    expect([counts, changes]).toEqual([{ added: 0, modified: 0, deleted: 0 }, []])
    const { restore } = await savepoint.undo()
    expect(restore!.files).toEqual({ created: 0, deleted: 0, replaced: 0, metadata: 0 })
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
    await savepoint.redo()
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
  })

  it('R8: taking back the first of two runs leaves the work of the second', async () => {
    const first = await run('echo first > a; echo first > made-by-first; echo first > both')
    const second = await run('echo second > src/b; echo second > made-by-second; echo second > both')
    const { leftAlone } = await savepoint.rollback(first.run!.id)
    expect([space.read('a'), space.read('made-by-first')]).toEqual(['a1', undefined])
    expect([space.read('src/b'), space.read('made-by-second')]).toEqual(['second\n', 'second\n'])
    expect(leftAlone).toEqual([{ path: 'both', why: 'edited' }])
    expect(space.read('both')).toBe('second\n')
    await savepoint.undo()
    expect([space.read('a'), space.read('made-by-first'), space.read('src/b')]).toEqual([
      'first\n',
      'first\n',
      'second\n',
    ])
    await savepoint.rollback(second.run!.id)
    expect([space.read('a'), space.read('src/b'), space.read('both')]).toEqual(['first\n', 'b1', 'first\n'])
  })

  it('walks back over two runs, the newest first', async () => {
    await run('echo first > a')
    await run('echo second > a')
    await savepoint.undo()
    expect(space.read('a')).toBe('first\n')
    await savepoint.undo()
    expect(space.read('a')).toBe('a1')
    await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
  })
})

describe('where it runs', () => {
  it('in a subdirectory: the command is there, the protection is of the whole target', async () => {
    await savepoint.snapshot()
    const below = await space.open({ cwd: space.at('src') })
    const { changes } = await below.run({ command: ['sh', '-c', 'pwd > where; echo x > ../a'] })
    expect(space.read('src/where')).toBe(`${space.at('src')}\n`)
    expect(changes.map(change => change.path).sort()).toEqual(['a', 'src/where'])
    await savepoint.undo()
    expect([space.read('a'), space.read('src/where')]).toEqual(['a1', undefined])
  })

  it('in another directory than the target, with --target', () => {
    const result = runCli(space, ['run', '-t', space.dir, '--', 'sh', '-c', `pwd; echo x > '${space.at('a')}'`], {
      cwd: space.userHome,
    })
    expect(result).toMatchObject({ status: 0, stdout: `${space.userHome}\n` })
    expect(runCli(space, ['undo']).status).toBe(0)
    expect(space.read('a')).toBe('a1')
  })

  it('a program that is found through PATH or a link, with its arguments as they are', async () => {
    mkdirSync(space.at('bin'))
    writeFileSync(space.at('bin/tool'), '#!/bin/sh\nprintf "%s|" "$@" > args\n')
    chmodSync(space.at('bin/tool'), 0o755)
    symlinkSync('tool', space.at('bin/alias'))
    savepoint = await space.open({ env: { ...space.env, PATH: `${space.at('bin')}:${space.env.PATH}` } })
    await savepoint.run({ command: ['alias', '', ' ', '$HOME', '*', "a'b", '--json', '--', 'x\ny'] })
    expect(space.read('args')).toBe("| |$HOME|*|a'b|--json|--|x\ny|")
  })
})

it('`diff RUN` is what that run changed: not what came after it, and also when it is undone', () => {
  const [id] = /run_\w+/.exec(runCli(space, ['run', '--', 'sh', '-c', 'echo a2 > a']).stderr)!
  runCli(space, ['run', '--', 'sh', '-c', 'echo b > b'])
  const diff = () => runCli(space, ['diff', id!, '--name-status']).stdout
  expect(diff()).toBe('M a\n')
  runCli(space, ['undo'])
  runCli(space, ['undo'])
  expect(space.read('a')).toBe('a1')
  expect(diff()).toBe('M a\n')
  expect(JSON.parse(runCli(space, ['diff', id!, '--json']).stdout).to).toMatch(/^snap_/)
})
