/** Small things that commands say or leave as they are. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import { killedRun } from './support/killed-run.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

const say = (...args: string[]) => savepoint(space, args)
const take = (label: string) => savepointJson(space, ['snapshot', '-m', label]).id as string

describe('import', () => {
  it('is what undo takes back first; redo brings it again', () => {
    take('one')
    savepoint(space, ['export', 'one', join(space.base, 'x.tar')])
    say('run', '-q', '--', 'sh', '-c', 'echo a2 > a')
    const { id } = savepointJson(space, ['import', join(space.base, 'x.tar'), '-m', 'theirs'])
    expect(say('operations').stdout).toMatch(/import +(?:just now|\d+ seconds? ago) +can be undone/)
    expect(say('undo').stdout).toContain(`(${id} deleted)`)
    expect([say('show', 'theirs').status, space.read('a')]).toEqual([12, 'a2\n'])
    say('redo')
    expect(say('show', 'theirs').status).toBe(0)
    say('undo')
    say('undo')
    expect(space.read('a')).toBe('a1')
  })
})

describe('tag', () => {
  it('says when a name moves, and from where', () => {
    const [one, two] = [take('one'), take('two')]
    expect(say('tag', 'rel', 'one').stdout).toContain(`Tagged ${one} as rel\n`)
    expect(say('tag', 'rel', 'two').stdout).toContain(`Moved tag rel from ${one} to ${two}\n`)
  })
})

describe('verify', () => {
  it('says which of the snapshots are of this directory, and which `snapshots` does not list', () => {
    take('one')
    take('two')
    expect(say('verify').stdout).toMatch(/, 2 snapshots\n$/)
    say('delete', 'one')
    space.sh('mkdir ../other')
    savepoint(space, ['snapshot', '-t', join(space.base, 'other')])
    expect(say('verify').stdout).toMatch(/, 3 snapshots \(1 here, 1 of other directories, 1 deleted\)\n$/)
    expect(savepointJson(space, ['verify'])).toMatchObject({ snapshots: 3, snapshots_here: 1, snapshots_deleted: 1 })
  })
})

describe('max_store_bytes', () => {
  it('names other directories when they fill the store, and not a small snapshot of this one', () => {
    take('small')
    const other = join(space.base, 'other')
    space.sh('mkdir ../other')
    writeFileSync(join(other, 'large'), noise(300_000, 1))
    savepoint(space, ['snapshot', '-t', other])
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  max_store_bytes: 200 KB\n')
    const { stderr } = say('snapshot')
    expect(stderr).toContain(`Most of it is of other directories (${other}): `)
    expect(stderr).not.toContain('delete the largest')
    expect(savepoint(space, ['snapshot', '-t', other]).stderr).toContain('delete the largest: snap_')
  })

  it('reached by a run: what to do is said there, once', () => {
    space.sh('mkdir d e')
    take('one')
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  max_store_bytes: 200 KB\n')
    const big = `head -c 300000 /dev/urandom > big; ${savepointInShell} snapshot -q -m big`
    const { stderr } = say('run', '--', 'sh', '-c', `${big}; echo 2 > a; rm -r d; echo 3 > a; rm -r e`)
    const said = stderr.split('\n').filter(line => line.includes('delete the largest'))
    expect(said).toEqual([
      expect.stringMatching(
        /^savepoint: no snapshots until the store has room\. .*delete the largest: snap_\w+ \(30\d KB\)/,
      ),
    ])
    expect(said[0]).toMatch(/7 days.*raise snapshots\.max_store_bytes$/)
  })

  it('is said by status and doctor once it is reached: nothing new is protected then', () => {
    space.write('large', noise(300_000, 1))
    take('one')
    expect([say('status').stderr, say('doctor').status]).toEqual(['', 0])
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  max_store_bytes: 200 KB\n')
    expect(say('status').stderr).toMatch(/max_store_bytes is 200 KB: .*no snapshot can be taken, and no run begun\n$/)
    expect(say('doctor').stdout).toMatch(/^problem +disk .*the store has 30\d KB of 200 KB$/m)
  })
})

describe('what savepoint.yaml weakens', () => {
  it('is said by what captures, not by each command that looks', () => {
    space.write('savepoint.yaml', 'snapshots:\n  triggers:\n    disable_guard: true\n')
    expect(say('snapshot').stderr).toContain('weakens protection')
    expect(say('run', '--', 'true').stderr).toContain('weakens protection')
    for (const verb of ['status', 'log', 'snapshots', 'doctor', 'undo'])
      expect(say(verb).stderr).not.toContain('weakens')
    expect(say('coverage', 'a').stderr).not.toContain('weakens')
  })
})

describe('a rollback that is refused', () => {
  it('leaves HEAD and the list of snapshots as they were', () => {
    space.write('large', noise(600_000, 2))
    const wanted = take('one')
    space.write('large', 'small now')
    const head = take('two')
    space.write('a', 'not captured yet')
    const packs = join(space.home, 'store/packs')
    const files = readdirSync(packs).map(name => join(packs, name))
    const [pack] = files.sort((a, b) => statSync(b).size - statSync(a).size)
    const bytes = readFileSync(pack!)
    bytes.fill(0, 1000, 500_000)
    writeFileSync(pack!, bytes)
    const { status, stderr } = say('rollback', wanted)
    expect([status, stderr]).toEqual([14, expect.stringContaining('Nothing was changed')])
    expect(savepointJson(space, ['head']).id).toBe(head)
    expect(
      savepointJson(space, ['snapshots'])
        .map(({ id }: { id: string }) => id)
        .sort(),
    ).toEqual([wanted, head].sort())
    expect(space.read('a')).toBe('not captured yet')
    expect(savepointJson(space, ['snapshot']).stats).toMatchObject({ modified: 1 })
  })
})

describe('history', () => {
  it('of a directory: when anything in it changed, and no size that means nothing', () => {
    space.write('src/b')
    space.write('src/c')
    const ids = [take('one')]
    space.write('a', 'a2')
    take('elsewhere')
    space.sh('rm src/b')
    ids.unshift(take('three'))
    for (const path of ['src', join(space.dir, 'src')]) {
      const { versions, directory } = savepointJson(space, ['history', path])
      const told = versions.filter(({ status }: { status: string }) => status !== 'unchanged')
      expect([directory, told.map(({ snapshot }: { snapshot: string }) => snapshot)]).toEqual([true, ids])
      expect(told.map(({ size }: { size: unknown }) => size)).toEqual([null, null])
    }
    expect(say('history', 'src').stdout).toContain('src: a directory now\n')
    expect(say('history', '.').stdout).toMatch(
      /modified[^\n]*three\n.*modified[^\n]*elsewhere\n.*new[^\n]*one\n\.: a directory now\n/,
    )
  })
})

describe('a run whose supervisor was killed', () => {
  it('is not said to have ended while its processes run', () => {
    expect(killedRun(space, 'echo a2 > a; exec 3>&1; sleep 300 > /dev/null 2>&1 3>&- & echo $! > ../pid')).toBe(
      'SIGKILL',
    )
    const pid = readFileSync(join(space.base, 'pid'), 'utf8').trim()
    try {
      const { stderr } = say('undo')
      expect(stderr).toContain(`sleep (${pid})`)
      expect(stderr).toMatch(new RegExp(`still runs?: .*to end that: kill .*\\b${pid}\\b`))
      expect(stderr).not.toContain('ended without us')
      expect(space.read('a')).toBe('a1')
    } finally {
      process.kill(Number(pid), 'SIGKILL')
    }
  })
})

it('purge does not ask about what lies elsewhere', () => {
  take('one')
  expect(say('purge', '..')).toMatchObject({ status: 2, stderr: expect.stringContaining('it lies outside the target') })
  expect(say('purge', 'a').stderr).toContain('nobody can be asked here')
})
