/** `revert` without --from: which version it takes, when it refuses, and what it says when there is nothing to do. */
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { dialogue } from './support/dialogue.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('f', 'v1\n')
  take('-m', 'good')
})
afterEach(() => space.remove())

const { say, json, refused, refusedAs, take } = dialogue(() => space)
const run = (script: string) => savepoint(space, ['run', '-q', '--', 'sh', '-c', script])

describe('the version is that of HEAD or the nearest ancestor that has it', () => {
  it('not what a revert has just taken away', () => {
    space.write('f', 'BAD\n')
    say(['revert', 'f'])
    expect(say(['revert', 'f'])).toMatch(/^Nothing to change: everything is as in snap_ID \(good\)\n/)
    expect(space.read('f')).toBe('v1\n')
  })

  it('not what a rollback has just taken away, nor after that was undone', () => {
    space.write('f', 'BAD\n')
    say(['rollback', 'good'])
    rmSync(space.at('f'))
    say(['revert', 'f'])
    expect(space.read('f')).toBe('v1\n')
    space.write('f', 'BAD\n')
    say(['rollback', 'good'])
    say(['undo'])
    expect(space.read('f')).toBe('BAD\n')
    say(['revert', 'f'])
    expect(space.read('f')).toBe('v1\n')
  })

  it('not that of a run that was undone', () => {
    run('echo AGENT > f')
    say(['undo'])
    rmSync(space.at('f'))
    say(['revert', 'f'])
    expect(space.read('f')).toBe('v1\n')
  })

  it('not what a directory lacked before another revert', () => {
    space.write('d/a')
    space.write('d/b')
    take()
    space.sh('rm d/a d/b; touch d/keep')
    say(['revert', 'd/a'])
    say(['revert', 'd'])
    expect([space.read('d/a'), space.read('d/b')]).toEqual(['d/a\n', 'd/b\n'])
  })

  it('of everything is recorded by a name', () => {
    space.sh('rm f')
    say(['revert', '.'])
    expect(say(['operations'])).toMatch(/ revert \. to snap_ID/)
  })

  it('of the ancestor where HEAD itself does not have it', () => {
    run('rm f')
    expect(say(['revert', 'f'])).toMatch(/^Reverted f to snap_ID: 1 created\n/)
  })

  it('of another branch where no ancestor has it, and that is said', () => {
    run('echo made > made')
    const last = savepoint(space, ['head', '-q']).stdout.trim()
    say(['undo'])
    const { status, stderr } = savepoint(space, ['revert', 'made'])
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: `savepoint: neither HEAD nor what it descends from has made: it comes from ${last}, which is on another branch\n`,
    })
    expect(space.read('made')).toBe('made\n')
  })

  it('of a safety snapshot where nothing else has it', () => {
    space.write('only', 'once\n')
    say(['rollback', 'good'])
    expect(existsSync(space.at('only'))).toBe(false)
    expect(savepoint(space, ['revert', 'only'])).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('another branch'),
    })
    expect(space.read('only')).toBe('once\n')
  })

  it('of the whole target as of a path', () => {
    space.write('f', 'BAD\n')
    say(['revert', 'f'])
    space.write('f', 'WORSE\n')
    say(['revert', '.'])
    expect(space.read('f')).toBe('v1\n')
  })
})

describe('a path that no snapshot has', () => {
  it('stays, and the hint says how to remove it', () => {
    space.write('brandnew')
    const { hint } = refusedAs(
      ['revert', 'brandnew'],
      12,
      'path.unknown',
      /^savepoint: Cannot revert brandnew: no snapshot has it\n/,
    )
    expect(hint).toContain('`savepoint revert brandnew --from SNAPSHOT` removes it')
    expect(space.read('brandnew')).toBe('brandnew\n')
    expect(say(['revert', 'brandnew', '--from', 'good'])).toMatch(/^Reverted brandnew to .*: 1 deleted\n/)
    expect(existsSync(space.at('brandnew'))).toBe(false)
  })

  it('and that rules exclude is unknown to every verb that goes back', () => {
    space.write('.gitignore', '*.log\n')
    space.write('y.log')
    for (const args of [
      ['revert', 'y.log'],
      ['revert', 'y.log', '--from', 'good'],
      ['rollback', 'good', '--', 'y.log'],
    ])
      refusedAs(args, 12, 'path.unknown', /Cannot restore y\.log: .*\n {2}hint: .*savepoint coverage y\.log/)
    expect(space.read('y.log')).toBe('y.log\n')
  })
})

describe('nothing to change', () => {
  it('points to the other versions, unless one was named', () => {
    run('echo AGENT > f')
    expect(say(['revert', 'f'])).toBe(
      'Nothing to change: everything is as in snap_ID\nIts other versions: savepoint history f\n' +
        'To bring one back: savepoint revert f --from SNAPSHOT\n',
    )
    say(['revert', 'f', '--from', 'good'])
    expect(say(['revert', 'f', '--from', 'good'])).toBe('Nothing to change: everything is as in snap_ID (good)\n')
  })

  it('is not said of everything where something was left alone: a link stands where a directory was', () => {
    space.write('src/main.js', 'main\n')
    take()
    const outside = join(space.base, 'out')
    mkdirSync(outside)
    rmSync(space.at('src'), { recursive: true })
    symlinkSync(outside, space.at('src'))
    const text = say(['revert', 'src/main.js'], 3)
    expect(text).toBe(
      'Nothing was changed\nLeft alone (1):\n  src: something else stands in its place\n' +
        'To put the directory back: savepoint revert src --from snap_ID\n',
    )
    expect(json('revert', 'src/main.js')[0].left_alone).toEqual([{ path: 'src', why: 'in-the-way' }])
    const { stdout } = savepoint(space, ['revert', 'src/main.js'])
    const next = /savepoint (revert .*)\n$/.exec(stdout)![1]!.split(' ')
    expect(savepoint(space, next).status).toBe(0)
    expect(space.read('src/main.js')).toBe('main\n')
  })

  it('is not said of everything where rules now exclude what was named', () => {
    space.write('x.log')
    take()
    space.write('.gitignore', '*.log\n')
    expect(say(['rollback', 'good', '--', 'x.log'])).toBe(
      'Nothing to change: everything else is as in snap_ID (good)\nStay, because ignore rules hid them: x.log\n',
    )
    expect(space.read('x.log')).toBe('x.log\n')
  })

  it('where the path is a typing error, it is an error as before', () => {
    refused(['revert', 'g'], 12, /Cannot restore g: no snapshot has it/)
  })
})
