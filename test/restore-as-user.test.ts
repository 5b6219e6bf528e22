/** Capture and restore with the rights of an ordinary user: read-only directories, unreadable files, files of others. */
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import type { RestoreResult } from '../src/index.ts'
import { fullImageOf } from './support/full-image.ts'
import { gated, isRoot } from './support/machine.ts'
import { differences } from './support/tree-image.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let ws: Workspace
beforeEach(() => {
  ws = new Workspace()
})
afterEach(() => ws.remove())

const asUser = (title: string, work: () => Promise<void>) => gated(canDropPrivilege, 'setpriv', title, work)
const withOthers = (title: string, work: () => Promise<void>) =>
  gated(isRoot && canDropPrivilege, 'root and setpriv', title, work)

/** Snapshot, `destroy` (as root, if we are), rollback as the user; returns the images and the answer of the rollback. */
async function rollBack(destroy: string) {
  const before = fullImageOf(ws.dir)
  const taken = await runAsUser(ws, [['snapshot', { label: 'one' }]])
  expect(taken.error).toBeUndefined()
  ws.sh(destroy)
  const changed = fullImageOf(ws.dir)
  const rolled = await runAsUser(ws, [['rollback', 'one']])
  return { before, changed, taken: taken.results[0], rolled }
}

asUser('F1 0555 directories and 0444 files: created, deleted, edited and renamed inside them, and back', async () => {
  ws.write('ro/sub/edited')
  ws.write('ro/sub/deleted')
  ws.write('ro/kept')
  ws.sh('chmod 444 ro/sub/edited; chmod 555 ro/sub ro')
  const { before, changed, rolled } = await rollBack(
    'chmod u+w ro ro/sub ro/sub/edited; echo new > ro/sub/edited; rm ro/sub/deleted; mkdir ro/new; echo x > ro/new/x; chmod 555 ro/new ro/sub ro',
  )
  expect(rolled.error).toBeUndefined()
  expect(rolled.results[0].leftAlone).toEqual([])
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  const undone = await runAsUser(ws, [['undo']])
  expect(undone.error).toBeUndefined()
  expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
})

withOthers('attributes that the system refuses to change are not counted as put back', async () => {
  ws.write('mine')
  ws.write('theirs')
  ws.sh('chmod 644 mine theirs; chown 1234 theirs')
  const { rolled } = await rollBack('chmod 600 mine; chmod 666 theirs')
  expect(rolled.results[0]).toMatchObject({
    files: { metadata: 1, replaced: 0 },
    changes: [{ action: 'metadata', path: 'mine' }],
    leftAlone: [{ path: 'theirs', why: 'refused' }],
  })
})

asUser('what a run closed to its owner is its own work, although the capture at its end had to open it', async () => {
  ws.write('old')
  ws.write('linked')
  ws.sh('ln linked twin; touch -d "10 seconds ago" old linked')
  const before = fullImageOf(ws.dir)
  // The captures come much later than its calls.
  const script =
    'chmod 000 old linked; cp -p old copy 2>/dev/null || touch -d "10 seconds ago" copy; chmod 000 copy; sleep 1.5'
  const { error } = await runAsUser(ws, [['run', { command: ['sh', '-c', script] }]])
  expect(error).toBeUndefined()
  const undone = await runAsUser(ws, [['undo']])
  expect([undone.error, undone.results[0].restore.leftAlone, undone.notices]).toEqual([undefined, [], []])
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
})

asUser('F1 a directory that is read-only now and was writable then: its files and its mode come back', async () => {
  ws.write('d/file')
  ws.write('d/sub/other')
  const { before, rolled } = await rollBack('echo edited > d/file; rm -r d/sub; chmod 555 d')
  expect(rolled.error).toBeUndefined()
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
})

asUser('F1 a whole read-only tree that is gone comes back, and goes again', async () => {
  ws.write('m/pkg/a/file')
  ws.write('m/pkg/b')
  ws.sh('chmod -R a-w m')
  const { before, changed, rolled } = await rollBack('chmod -R u+w m; rm -r m')
  expect(rolled.error).toBeUndefined()
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  expect((await runAsUser(ws, [['undo']])).error).toBeUndefined()
  expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
})

asUser('F1 a target directory that is itself read-only', async () => {
  ws.write('file')
  fs.chmodSync(ws.dir, 0o555)
  const { before, rolled } = await rollBack('chmod 755 .; echo edited > file; echo new > new; chmod 555 .')
  expect(rolled.error).toBeUndefined()
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
})

asUser(
  'an unreadable file and an unreadable directory are listed as skipped, and left alone by a rollback',
  async () => {
    ws.write('secret')
    ws.write('locked/inside')
    ws.write('open')
    ws.sh('chmod 000 secret locked')
    const { before, taken, rolled } = await rollBack('echo edited > open')
    const skipped = taken.skipped.map(({ path, reason }: { path: string; reason: string }) => `${path} ${reason}`)
    expect(skipped.sort()).toEqual(['locked unreadable', 'secret unreadable'])
    expect(taken.skippedCount).toBe(2)
    expect(rolled.error).toBeUndefined()
    expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  },
)

asUser(
  'R16 a file of ours that is unreadable today: its bytes are in the safety snapshot, and undo gives it back',
  async () => {
    ws.write('file', 'then')
    const { before, changed, rolled } = await rollBack('echo now > file; chmod 000 file')
    expect(rolled.error).toBeUndefined()
    expect(rolled.results[0].leftAlone).toEqual([])
    expect(differences(before, fullImageOf(ws.dir))).toEqual([])
    expect((await runAsUser(ws, [['undo']])).error).toBeUndefined()
    expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
  },
)

asUser('--dry-run tells of what is closed to its owner what the rollback then does, and leaves its mode', async () => {
  ws.write('file', 'then')
  ws.write('same', 'then')
  expect((await runAsUser(ws, [['snapshot', { label: 'one' }]])).error).toBeUndefined()
  ws.sh('echo now > file; mkdir made; echo now > made/x; echo now > new; chmod 000 file same made new')
  const changed = fullImageOf(ws.dir)
  const tried = await runAsUser(ws, [['rollback', 'one', { dryRun: true }]])
  expect(tried.error).toBeUndefined()
  expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
  const rolled = await runAsUser(ws, [['rollback', 'one']])
  const told = ({ changes, leftAlone, uncaptured }: RestoreResult) => ({ changes, leftAlone, uncaptured })
  expect(told(tried.results[0])).toEqual(told(rolled.results[0]))
  expect(rolled.results[0].leftAlone).toEqual([])
  expect(fs.existsSync(ws.at('new'))).toBe(false)
})

withOthers("R16 another user's file that is unreadable today is left alone and reported", async () => {
  ws.write('file', 'then')
  ws.write('other', 'then')
  const { rolled } = await rollBack('echo now > file; chmod 600 file; chown 1234 file; echo now > other')
  expect(rolled.error).toBeUndefined()
  expect(rolled.results[0].leftAlone).toEqual([{ path: 'file', why: 'not-stored' }])
  expect([ws.read('file'), ws.read('other')]).toEqual(['now\n', 'then'])
})

withOthers(
  "another user's file in a directory of ours: edited, it comes back with our owner, and that is said",
  async () => {
    ws.write('theirs', 'then')
    ws.sh('chmod 644 theirs; chown 1234 theirs')
    const { rolled } = await rollBack('echo now > theirs')
    expect(rolled.error).toBeUndefined()
    expect(ws.read('theirs')).toBe('then')
    expect(rolled.results[0].leftAlone).toEqual([{ path: 'theirs', why: 'attributes' }])
  },
)

withOthers(
  "another user's directory full of files, made since: the rollback does not get stuck, nothing is lost",
  async () => {
    ws.write('src/a', 'then')
    const { rolled } = await rollBack(
      'echo now > src/a; mkdir -p build/out/deep; echo x > build/out/deep/x; chown -R 1234 build/out; chmod -R go-w build',
    )
    expect(rolled.signal).toBeNull()
    const next = await runAsUser(ws, [['snapshot'], ['verify']])
    expect(next.error).toBeUndefined()
    expect(next.results[1].problems).toEqual([])
    expect(fs.readdirSync(ws.dir).filter(name => name.startsWith('.savepoint-'))).toEqual([])
    if (rolled.error) {
      expect(rolled.error.isOurs).toBe(true)
      expect([ws.read('src/a'), ws.read('build/out/deep/x')]).toEqual(['now\n', 'x\n'])
    } else {
      expect(ws.read('src/a')).toBe('then')
      expect(ws.read('build/out/deep/x')).toBe('x\n')
      expect(rolled.results[0].leftAlone.map(({ path }: { path: string }) => path)).toContain('build/out')
    }
  },
)

withOthers(
  'a device node and a set-id file of root, restored by a user: reported, and no right is given away',
  async () => {
    ws.write('tool', '#!/bin/sh\n')
    ws.sh('mknod null c 1 3; chown 1234 tool; chmod 4755 tool')
    const { rolled } = await rollBack('rm null tool')
    expect(rolled.error).toBeUndefined()
    const refused = rolled.results[0].leftAlone.map(({ path, why }: { path: string; why: string }) => `${path} ${why}`)
    expect(refused.sort()).toEqual(['null refused', 'tool attributes'])
    expect(fs.statSync(ws.at('tool')).mode & 0o7777).toBe(0o755)
  },
)

describe('R17 a late edit that cannot be read as it is', () => {
  const late = (work: () => void) => ({ at: { point: 'restore:staged', work } })

  asUser('closed by its owner, file and directory: kept in a snapshot with its mode', async () => {
    ws.write('file', 'then')
    ws.write('large', 'then')
    expect((await runAsUser(ws, [['snapshot', { label: 'one' }]])).error).toBeUndefined()
    ws.sh('echo now > file; echo now > large; mkdir made; echo now > made/x')
    const rolled = await runAsUser(
      ws,
      [['rollback', 'one']],
      late(() =>
        ws.sh(
          'echo late > file; truncate -s 2M large; mkdir made/d; echo late > made/d/x; chmod 000 file large made/d',
        ),
      ),
    )
    expect(rolled.error).toBeUndefined()
    const [{ lateEdits, leftAlone }] = rolled.results
    expect(leftAlone).toEqual([])
    expect([ws.read('file'), ws.read('large'), fs.existsSync(ws.at('made'))]).toEqual(['then', 'then', false])
    const sp = await ws.open()
    expect(sp.read(lateEdits.id, 'file').toString()).toBe('late\n')
    expect(sp.read(lateEdits.id, 'large')).toHaveLength(2 * 1024 * 1024)
    expect(sp.read(lateEdits.id, 'made/d/x').toString()).toBe('late\n')
    await sp.rollback(lateEdits.id, { paths: ['file'] })
    expect(fs.statSync(ws.at('file')).mode & 0o777).toBe(0)
  })

  withOthers("made another user's: put back as it is, and reported", async () => {
    for (const path of ['file', 'created', 'kept']) ws.write(path, 'then')
    expect((await runAsUser(ws, [['snapshot', { label: 'one' }]])).error).toBeUndefined()
    ws.sh('echo now > file; rm created; echo now > kept; mkdir made; echo now > made/x')
    const rolled = await runAsUser(
      ws,
      [['rollback', 'one']],
      late(() => ws.sh('for f in file created made/x; do echo late > $f; chmod 600 $f; chown 1234 $f; done')),
    )
    expect(rolled.error).toBeUndefined()
    const left = rolled.results[0].leftAlone.map(({ path, why }: { path: string; why: string }) => `${path} ${why}`)
    expect(left.sort()).toEqual(['created edited', 'file edited', 'made edited'])
    expect(['file', 'created', 'made/x'].map(path => ws.read(path))).toEqual(['late\n', 'late\n', 'late\n'])
    expect(ws.read('kept')).toBe('then')
    expect(fs.readdirSync(ws.dir).filter(name => name.startsWith('.savepoint-'))).toEqual([])
    const next = await runAsUser(ws, [['snapshot'], ['verify']])
    expect(next.error).toBeUndefined()
    expect(next.results[1].problems).toEqual([])
  })

  withOthers('and then kill -9: the recovery does not delete it', async () => {
    ws.write('.gitignore', '*\n!.gitignore\n!file\n')
    ws.write('file', 'then')
    expect((await runAsUser(ws, [['snapshot', { label: 'one' }]])).error).toBeUndefined()
    ws.write('file', 'now')
    const killed = await runAsUser(ws, [['rollback', 'one']], {
      failpoint: 'restore:placed',
      ...late(() => ws.sh('echo late > file; chmod 600 file; chown 1234 file')),
    })
    expect(killed.signal).toBe('SIGKILL')
    const { error, notices } = await runAsUser(ws, [['snapshots']])
    expect(error).toBeUndefined()
    expect(ws.read('file')).toBe('then')
    const kept = /(\.savepoint-stage-\S+-kept) holds what could not be stored/.exec(notices.join('\n'))![1]!
    expect(ws.sh(`cat ${kept}/*`)).toBe('late\n')
  })
})

describe('R13 kill -9 while read-only directories are open', () => {
  const modes = () => ws.sh("find . -printf '%m %p\\n' | sort -k 2")

  beforeEach(async () => {
    for (const path of ['ro/sub/edited', 'ro/sub/gone', 'ro/kept', 'closed', 'shut/inside', 'open/x'])
      ws.write(path, 'then')
    ws.sh('chmod 000 closed; chmod 555 ro/sub ro; chmod 300 shut; chmod 555 .')
  })

  const opened = ['restore:opened#1', 'restore:opened#2', 'restore:opened#3', 'restore:opened#4']
  const captured = ['capture:before-root#2', 'capture:before-root#3', 'capture:before-root#4']
  const scopes: [string, object][] = [
    ['the whole', {}],
    ['one path', { paths: ['ro'] }],
  ]
  for (const [what, options] of scopes) {
    withOthers(`rollback of ${what}, killed at each of these steps: every mode is back`, async () => {
      const { error, results } = await runAsUser(ws, [['snapshot', { label: 'one' }]])
      expect(error).toBeUndefined()
      const before = modes()
      let killed = 0
      for (const failpoint of [...opened, ...captured]) {
        ws.sh('chmod u+w ro/sub; echo now > ro/sub/edited; rm -f ro/sub/gone; echo now > ro/sub/new; chmod 555 ro/sub')
        const { signal } = await runAsUser(ws, [['rollback', results[0].id, options]], { failpoint })
        if (signal === 'SIGKILL') killed++
        const next = await runAsUser(ws, [['snapshots']])
        expect([next.error, modes()], failpoint).toEqual([undefined, before])
        expect([ws.read('ro/sub/edited'), ws.read('ro/sub/gone'), ws.read('ro/sub/new')]).toEqual([
          'then',
          'then',
          undefined,
        ])
      }
      expect(killed).toBeGreaterThanOrEqual(4)
    })
  }
})

describe('R13 kill -9 while a capture has opened what its owner closed', () => {
  const modes = () => ws.sh("find . -printf '%m %p\\n' | sort -k 2")
  const prepare = async () => {
    for (const path of ['secret', 'shut/inside', 'shut/deep/file', 'shown', 'edited']) ws.write(path, 'then')
    expect((await runAsUser(ws, [['snapshot', { label: 'one' }]])).error).toBeUndefined()
    ws.write('edited', 'now')
    ws.sh('chmod 000 shut/inside shut/deep shut secret')
  }

  asUser('before a rollback has its safety snapshot: the next command closes it again, and says so', async () => {
    await prepare()
    const before = modes()
    for (const hit of [1, 2, 3, 4]) {
      const { signal } = await runAsUser(ws, [['rollback', 'one']], { failpoint: `capture:opened#${hit}` })
      expect([signal, modes() === before]).toEqual(['SIGKILL', false])
      const { error, notices } = await runAsUser(ws, [['snapshots']])
      expect([error, modes()]).toEqual([undefined, before])
      const paths = hit === 1 ? '1 path' : `${hit} paths`
      expect(notices).toEqual([`put back the mode of ${paths} that an interrupted command had opened to read`])
      expect((await runAsUser(ws, [['snapshots']])).notices).toEqual([])
    }
  })

  asUser('at the end of a run; a mode that was set since stays', async () => {
    await prepare()
    const command = ['sh', '-c', 'echo more > more']
    const { signal } = await runAsUser(ws, [['run', { command }]], { failpoint: 'capture:opened#4' })
    expect(signal).toBe('SIGKILL')
    ws.sh('chmod 640 secret')
    expect((await runAsUser(ws, [['snapshots']])).error).toBeUndefined()
    expect(ws.sh('stat -c %a secret shut; ls -A').split('\n')).toEqual([
      '640',
      '0',
      'edited',
      'more',
      'secret',
      'shown',
      'shut',
      '',
    ])
  })
})

describe('R16 a directory that its owner closed (0000) inside the tree: two rollbacks, undo and redo', () => {
  const cases: [string, string, string][] = [
    ['since before the snapshot', 'mkdir c; echo a > c/a; chmod 000 c', 'echo now > file'],
    [
      'that can still be listed',
      'mkdir -p c/d; echo a > c/a; echo b > c/d/b',
      'echo now > c/a; rm c/d/b; chmod 444 c/d c',
    ],
    ['that can still be listed, made since', 'echo a > a', 'mkdir c; echo x > c/x; chmod 644 c'],
    [
      'after the snapshot, its files edited',
      'mkdir -p c/d; echo a > c/a; echo b > c/d/b',
      'echo now > c/a; rm c/d/b; echo x > c/x; chmod 000 c/d c',
    ],
    [
      'made since, with files and a closed directory in it',
      'true',
      'mkdir -p c/d; echo a > c/a; echo b > c/d/b; truncate -s 2M c/large; chmod 000 c/d c/a c/large; chmod 000 c',
    ],
    ['in place of a file', 'echo a > c', 'rm c; mkdir c; echo x > c/x; chmod 000 c'],
    ['moved', 'mkdir -p c/d; echo a > c/d/a; chmod 700 c', 'chmod 000 c/d; mv c moved; chmod 000 moved'],
    [
      'one that became a file',
      'mkdir c; echo a > c/a',
      'chmod 000 c; chmod 700 c; rm -r c; echo file > c; chmod 000 c',
    ],
  ]
  for (const [what, prepare, change] of cases) {
    asUser(what, async () => {
      ws.write('file', 'then')
      ws.sh(prepare)
      const { before, changed, rolled, taken } = await rollBack(`echo now > file; ${change}`)
      expect(rolled.error).toBeUndefined()
      expect(rolled.results[0].leftAlone).toEqual([])
      expect(differences(before, fullImageOf(ws.dir))).toEqual([])
      const steps: [verb: [string, ...unknown[]], image: Map<string, string>][] = [
        [['undo'], changed],
        [['redo'], before],
        [['undo'], changed],
        [['rollback', taken.id], before],
        [['undo'], changed],
      ]
      for (const [verb, image] of steps) {
        const { error, results } = await runAsUser(ws, [verb])
        expect(error).toBeUndefined()
        expect((results[0].restore ?? results[0]).leftAlone).toEqual([])
        expect(differences(image, fullImageOf(ws.dir)), verb.join(' ')).toEqual([])
      }
      expect((await runAsUser(ws, [['verify']])).results[0].problems).toEqual([])
    })
  }
})

withOthers('links of somebody else that come back as our own are named by where they are', async () => {
  ws.write('d/sub/file')
  ws.sh('ln -s x link; ln -s y d/sub/inner; chown -h 4321 link d/sub/inner')
  const { rolled } = await rollBack('rm -r link d')
  expect(rolled.error).toBeUndefined()
  const { leftAlone } = rolled.results[0] as RestoreResult
  expect(leftAlone.map(({ path, why }) => `${why} ${path}`).toSorted()).toEqual([
    'attributes d/sub/inner',
    'attributes link',
  ])
})
