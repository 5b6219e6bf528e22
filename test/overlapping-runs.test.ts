/** R8 for two runs at the same time: taking one back leaves what changed while the other was at work, and says so. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { RunResult, Savepoint } from '../src/index.ts'
import { savepointInShell } from './support/built-cli.ts'
import { cliCommand, runCli } from './support/cli.ts'
import { runVerbs } from './support/engine-process.ts'
import { LiveAgent } from './support/live-agent.ts'
import { gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const hasMountNamespaces = spawnSync('unshare', ['-m', 'true']).status === 0

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('src/main.js', 'main\n')
  space.write('lib/hl1', 'one\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

/** Nothing tells whose a change is, unless the last part says otherwise. */
let tracer: 'none' | 'seccomp' = 'none'
const run = async (script: string): Promise<RunResult> =>
  (await space.open()).run({ command: ['sh', '-ec', script], tracer })

/** `inner` runs from its first snapshot to its last between the two halves of `outer`. */
async function during(outer: string, inner: () => Promise<RunResult>, firstHalf = ''): Promise<[RunResult, RunResult]> {
  const pipes = mkdtempSync(join(space.base, 'pipes-'))
  const [begun, go] = [join(pipes, 'begun'), join(pipes, 'go')]
  execFileSync('mkfifo', [begun, go])
  const waiting = run(`${firstHalf}\necho > '${begun}'; read x < '${go}'\n${outer}`)
  await readFile(begun)
  const between = await inner()
  await writeFile(go, '\n')
  return [await waiting, between]
}

const state = () => ['src/main.js', 'B', 'lib/hl1'].map(path => space.read(path))
const overlapped = (...paths: string[]) => paths.map(path => ({ path, why: 'overlapped' }))

it('of one that was taken back after the other nothing is said to have been taken back before', async () => {
  tracer = 'seccomp'
  const [outer, inner] = await during(
    'echo A2 > a2; rm -rf src',
    () => run('echo B > B; echo more >> lib/hl1'),
    'echo A > a; echo A >> lib/hl1',
  ).finally(() => {
    tracer = 'none'
  })
  space.notices.length = 0
  await savepoint.rollback(outer.run!.id, { run: outer.run!.id })
  await savepoint.rollback(inner.run!.id, { run: inner.run!.id })
  expect(space.notices.filter(text => text.includes('taken back before'))).toEqual([])
  expect(state()).toEqual(['main\n', undefined, 'one\nA\nmore\n'])
})

describe('undo of the outer of two runs', () => {
  const both = () => during('rm -rf src', () => run('echo B > B; echo more >> lib/hl1'))

  it('leaves the work of the other and reports it', async () => {
    await both()
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual(overlapped('B', 'lib/hl1'))
    expect(state()).toEqual(['main\n', 'B\n', 'one\nmore\n'])
    await savepoint.redo()
    expect(state()).toEqual([undefined, 'B\n', 'one\nmore\n'])
    await savepoint.undo()
    expect(state()).toEqual(['main\n', 'B\n', 'one\nmore\n'])
  })

  it('diff of it shows all that changed meanwhile, and says so', async () => {
    const [outer] = await both()
    const { changes } = await savepoint.diff({ from: outer.run!.id })
    expect(changes.map(({ path }) => path)).toEqual(['B', 'lib/hl1', 'src/main.js'])
    const unsure = 'another run was at work, too: what it changed meanwhile may be among this'
    expect(space.notices).toContain(unsure)
  })

  it('then the other can be undone, too: nobody else is left whose work it could be', async () => {
    await both()
    await savepoint.undo()
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual([])
    expect(state()).toEqual(['main\n', undefined, 'one\n'])
  })

  it('on the command line: exit code 3, and a command that takes back both', async () => {
    await both()
    const { status, stdout } = runCli(space, ['undo'])
    expect(stdout).toMatch(
      /\nFiles: 1 created\nLeft alone \(2\):\n {2}B: another run was at work, too: whose change it is cannot be told\n {2}lib\/hl1: .*\nTo take back their changes, too: savepoint rollback snap_\w+ -- B lib\/hl1\nTo redo: /,
    )
    expect(status).toBe(3)
    const force = /savepoint (rollback .*)/.exec(stdout)![1]!.split(' ')
    expect(runCli(space, force).status).toBe(0)
    expect(state()).toEqual(['main\n', undefined, 'one\n'])
  })

  it('is completed in the same way after kill -9', async () => {
    await both()
    expect((await runVerbs(space, [['undo']], { failpoint: 'restore:place' })).signal).toBe('SIGKILL')
    await space.open()
    expect(space.notices.join('\n')).toContain('completed an undo that was interrupted')
    expect(state()).toEqual(['main\n', 'B\n', 'one\nmore\n'])
  })
})

it('`rollback RUN` of the inner one: all of it changed while the outer went on', async () => {
  const [outer, inner] = await during('rm -rf src', () => run('echo B > B'))
  expect((await savepoint.rollback(inner.run!.id)).leftAlone).toEqual(overlapped('B'))
  expect((await savepoint.rollback(outer.run!.id)).leftAlone).toEqual(overlapped('B'))
  expect(state()).toEqual(['main\n', 'B\n', 'one\n'])
  await savepoint.rollback(outer.before!.id)
  expect(state()).toEqual(['main\n', undefined, 'one\n'])
})

it('empty directories that others made stay: of another run, and of the user in one that the run made', async () => {
  tracer = 'seccomp'
  try {
    const [outer] = await during('echo more >> lib/hl1; mkdir made; touch made/a', () =>
      run('mkdir -p theirs/deep/deeper'),
    )
    space.sh('mkdir made/mine')
    const { keptDirs, leftAlone } = await savepoint.rollback(outer.run!.id)
    expect([space.sh('find made theirs | sort'), leftAlone]).toEqual([
      'made\nmade/mine\ntheirs\ntheirs/deep\ntheirs/deep/deeper\n',
      [],
    ])
    expect(keptDirs).toContain('made')
    expect(space.read('lib/hl1')).toBe('one\n')
  } finally {
    tracer = 'none'
  }
})

it('in a directory that one made and one that it removed, only what the other touched is left alone', async () => {
  space.write('src/old', 'old\n')
  await during(
    'rm -rf src',
    () => run('echo B > made/b; rm src/old; echo more >> src/main.js'),
    'mkdir made; touch made/a',
  )
  const { restore } = await savepoint.undo()
  expect(restore!.leftAlone).toEqual(overlapped('made/b', 'src/main.js', 'src/old'))
  expect(restore!.keptDirs).toEqual(['made'])
  expect(space.sh('find . -type f | sort')).toBe('./lib/hl1\n./made/b\n')
})

it('attributes: of a file, of a directory, of the target itself', async () => {
  await during('chmod 711 .; chmod 700 lib; chmod 600 lib/hl1; chmod 700 src', () =>
    run('chmod 750 .; chmod 750 lib; chmod 640 lib/hl1'),
  )
  const { restore } = await savepoint.undo()
  expect(restore!.leftAlone).toEqual(overlapped('', 'lib', 'lib/hl1'))
  expect(space.sh('stat -c %a . lib lib/hl1 src')).toBe('711\n700\n600\n755\n')
})

describe('a repository', () => {
  beforeEach(() => void space.sh('git init -q; git add -A; git commit -qm one'))
  const commit = (message: string) => `git commit -q --allow-empty -m ${message}`

  it('in which both worked is left alone as a whole', async () => {
    await during(commit('outer'), () => run(commit('inner')), 'echo x > src/x')
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual(overlapped('.git'))
    expect(space.read('src/x')).toBeUndefined()
    expect(space.git('fsck', '--strict')).toBe('')
    expect(space.git('log', '--format=%s')).toBe('outer\ninner\none\n')
  })

  it('that one removed after the other had committed does not come back without that commit in silence', async () => {
    const [{ before }] = await during('rm -rf .git', () => run(commit('inner')))
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual(overlapped('.git'))
    await savepoint.rollback(before!.id, { paths: ['.git'] })
    expect(space.git('log', '--format=%s')).toBe('one\n')
  })

  it('that the other only looked at comes back', async () => {
    await during('rm -rf .git', () => run('touch -d 2001-01-01 src/main.js; git status > ../status'))
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone.filter(({ path }) => path.startsWith('.git'))).toEqual([])
    expect(space.git('fsck', '--strict')).toBe('')
  })
})

it('a run that a process of another one started is a part of that', async () => {
  const cli = cliCommand.map(word => `'${word}'`).join(' ')
  const outer = await run(`echo more >> lib/hl1; ${cli} run -q -- sh -c 'echo B > B'; rm -rf src`)
  const inner = savepoint.runs().find(({ id }) => id !== outer.run!.id)!
  expect((await savepoint.rollback(inner.id)).leftAlone).toEqual([])
  expect(state()).toEqual([undefined, undefined, 'one\nmore\n'])
  await savepoint.undo()
  const { restore } = await savepoint.undo()
  expect(restore!.leftAlone).toEqual([])
  expect(state()).toEqual(['main\n', undefined, 'one\n'])
})

describe('two runs that are traced', () => {
  beforeEach(() => {
    tracer = 'seccomp'
  })
  afterEach(() => {
    tracer = 'none'
  })
  const both = () => during('rm -rf src', () => run('echo B > B; echo more >> lib/hl1'))

  it('a repository in which only the other worked, which was taken back before, is none of the business of the one', async () => {
    space.sh('git init -q; git add -A; git commit -qm one')
    const until = (name: string) => `until [ -e ../${name} ]; do sleep 0.02; done`
    const inTheMiddle = `(${until('asked')}; git commit -q --allow-empty -m two; touch ../made) &`
    await during('wait', () => run(`echo B > B; touch ../asked; ${until('made')}`), inTheMiddle)
    await savepoint.undo()
    space.sh('git commit -q --allow-empty -m later')
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual([])
    expect([space.read('B'), space.git('log', '--format=%s')]).toEqual([undefined, 'later\none\n'])
  })

  it('what the other had worked on, and the one then moved, is left where it is, and the rest goes back', async () => {
    space.write('lib/other', 'other\n')
    const moves = 'mv lib moved; mv src/main.js src/renamed'
    await during(moves, () => run('echo B >> lib/hl1; echo B >> src/main.js'))
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual(overlapped('lib/hl1', 'moved/hl1', 'src/main.js', 'src/renamed'))
    const live = ['moved/hl1', 'src/renamed', 'lib/other', 'moved/other'].map(path => space.read(path))
    expect(live).toEqual(['one\nB\n', 'main\nB\n', 'other\n', undefined])
  })

  it('undo takes back what the one did, exactly, and has nothing to report', async () => {
    await both()
    const { restore } = await savepoint.undo()
    expect([restore!.leftAlone, state()]).toEqual([[], ['main\n', 'B\n', 'one\nmore\n']])
    const other = await savepoint.undo()
    expect([other.restore!.leftAlone, state()]).toEqual([[], ['main\n', undefined, 'one\n']])
  })

  it('rollback of the inner one does the same', async () => {
    const [, inner] = await both()
    const { leftAlone } = await savepoint.rollback(inner.run!.id)
    expect([leftAlone, state()]).toEqual([[], [undefined, undefined, 'one\n']])
  })

  it('diff of the one shows what it did, and says that there is more', async () => {
    const [outer, inner] = await during(
      'rm -rf src; echo x >> both',
      () => run('echo B > B; echo more >> lib/hl1; echo y >> both'),
      'echo first > own',
    )
    space.write('after', 'by hand')
    const shown = async (ref: string) => (await savepoint.diff({ from: ref })).changes.map(({ path }) => path)
    expect(await shown(inner.run!.id)).toEqual(['B', 'both', 'lib/hl1'])
    expect(await shown(outer.run!.id)).toEqual(['both', 'own', 'src/main.js'])
    expect(outer.changes.map(({ path }) => path)).toEqual(['both', 'own', 'src/main.js'])
    expect(outer.counts).toEqual({ added: 2, modified: 0, deleted: 1 })
    const { before, after } = outer.run!
    const more = `2 changes of others while it went on not shown; to see all: savepoint diff ${before} ${after}`
    expect(space.notices).toContain(more)
    const all = (await savepoint.diff({ from: before!, to: after! })).changes.map(({ path }) => path)
    expect(all).toEqual(['B', 'both', 'lib/hl1', 'own', 'src/main.js'])
  })

  it('what both have touched is left alone, and reported', async () => {
    await during('echo outer >> lib/hl1; echo o > o', () => run('echo inner >> lib/hl1; echo i > i'))
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual(overlapped('lib/hl1'))
    expect([space.read('lib/hl1'), space.read('o'), space.read('i')]).toEqual(['one\ninner\nouter\n', undefined, 'i\n'])
  })

  it('what the other changed is not reported either when that one was taken back before', async () => {
    const until = (name: string) => `until [ -e ../${name} ]; do sleep 0.02; done`
    const first = run(`echo x > made; touch ../first; ${until('second')}; rm made`)
    await vi.waitUntil(() => existsSync(join(space.base, 'first')), { timeout: 30_000 })
    const second = run(`touch ../second; ${until('ended')}; echo B > B`)
    const { run: other } = await first
    writeFileSync(join(space.base, 'ended'), '')
    const { run: one } = await second
    await savepoint.rollback(other!.id)
    const { leftAlone } = await savepoint.rollback(one!.id)
    expect([leftAlone, space.read('made'), state()]).toEqual([[], undefined, ['main\n', undefined, 'one\n']])
  })

  it('what the other made in a directory that this one then moved stays, where it is now', async () => {
    await during('mv lib lib2', () => run('echo inner > lib/new'))
    await savepoint.undo()
    expect(space.sh('find lib lib2 -type f | sort')).toBe('lib/hl1\nlib2/new\n')
    await savepoint.redo()
    expect(space.sh('find . -path "./lib*" -type f | sort')).toBe('./lib2/hl1\n./lib2/new\n')
  })

  it('is completed in the same way after kill -9', async () => {
    await both()
    expect((await runVerbs(space, [['undo']], { failpoint: 'restore:place' })).signal).toBe('SIGKILL')
    await space.open()
    expect(state()).toEqual(['main\n', 'B\n', 'one\nmore\n'])
  })
})

describe('what somebody outside of the run changes meanwhile', () => {
  it('stays also in a directory that the run has moved, or where that had been', async () => {
    space.write('mine/m', 'm\n')
    space.write('src/sub/s', 's\n')
    savepoint = await space.open()
    // The first cannot be done, and is told all the same.
    const script =
      'mv src/sub src 2> /dev/null; mv lib lib2; mv lib2 lib3; touch ../ready; until [ -e ../go ]; do sleep 0.02; done'
    const run = savepoint.run({ command: ['sh', '-c', script] })
    await vi.waitUntil(() => existsSync(join(space.base, 'ready')), { timeout: 60_000 })
    // Their times are older than the run.
    space.sh('mv mine lib3/; ln -s x lib3/link; mkdir lib; ln src/main.js lib/other; mv src/main.js src/sub/s')
    writeFileSync(join(space.base, 'go'), '')
    await run
    const { restore } = await savepoint.undo()
    const outside = ['lib/other', 'lib3/link', 'lib3/mine/m', 'mine/m', 'src/main.js', 'src/sub/s']
    expect(restore!.leftAlone.map(({ path, why }) => `${why} ${path}`).sort()).toEqual(
      outside.map(path => `outside ${path}`),
    )
    expect(space.sh('find lib* mine ! -type d 2> /dev/null | sort || :')).toBe(
      'lib/hl1\nlib/other\nlib3/link\nlib3/mine/m\n',
    )
  })

  it('stays when the run is taken back, and is named; the way to take it back as well works', async () => {
    space.write('mine', 'm1\n')
    space.write('both', 'b1\n')
    savepoint = await space.open()
    const run = savepoint.run({
      command: [
        'sh',
        '-c',
        'echo agent > theirs; echo agent > both; touch ../ready; until [ -e ../go ]; do sleep 0.02; done',
      ],
    })
    await vi.waitUntil(() => existsSync(join(space.base, 'ready')), { timeout: 60_000 })
    space.write('mine', 'edited by hand\n')
    space.write('new by hand', 'n\n')
    writeFileSync(join(space.base, 'go'), '')
    await run
    const undone = await savepoint.undo()
    expect([space.read('theirs'), space.read('both'), space.read('mine'), space.read('new by hand')]).toEqual([
      undefined,
      'b1\n',
      'edited by hand\n',
      'n\n',
    ])
    expect(undone.restore!.leftAlone.map(({ path, why }) => `${why} ${path}`).sort()).toEqual([
      'outside mine',
      'outside new by hand',
    ])
    const before = savepoint.snapshots().find(({ type }) => type === 'pre-run')!
    await savepoint.rollback(before.id)
    expect([space.read('mine'), space.read('new by hand')]).toEqual(['m1\n', undefined])
  })

  gated(
    hasMountNamespaces,
    'unshare -m',
    'nothing is taken for an outsider that a sandbox of the run did',
    async () => {
      space.write('f', '1\n')
      savepoint = await space.open()
      const script = 'mount --bind "$PWD" /mnt && cd /mnt && echo 2 > f && echo new > g'
      const { exitCode } = await savepoint.run({ command: ['unshare', '-m', 'sh', '-ec', script] })
      expect(exitCode).toBe(0)
      await savepoint.undo()
      expect([space.read('f'), space.read('g')]).toEqual(['1\n', undefined])
    },
  )
})

it('a run that takes itself back leaves what another one has written a moment ago', async () => {
  const [one, other] = [new LiveAgent(space), new LiveAgent(space)]
  await one.begin()
  await other.begin()
  await one.do('echo one > lib/hl1; echo one > own')
  await other.do('echo other > lib/hl1')
  await one.do(`${savepointInShell} rollback -q $SAVEPOINT_RUN > /dev/null`)
  expect([space.read('lib/hl1'), space.read('own')]).toEqual(['other\n', undefined])
  await one.end()
  await other.end()
})
