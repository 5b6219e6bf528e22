/** Ctrl-C while `zfs` is at work for us, and `zfs` that is ended from outside: what was done then is known, and said. */
import { type SpawnSyncOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { processMark } from '../../src/store/process-mark.ts'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { builtCommand } from './built-cli.ts'
import { runCli, sourceCommand } from './cli.ts'
import { finishVerbs, startVerbs } from './engine-process.ts'
import type { Workspace } from './workspace.ts'
import { oneAndTwo, whileProgram } from './zfs-rollback-cases.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

const WEEK_MS = 8 * 24 * 3600 * 1000
/** Of a terminal: to all of the group that the command is in, when the filesystem has done it, but `zfs` has not ended. */
const CTRL_C = 'kill -s INT -- "-$(ps -o pgid= $PPID | tr -d " ")"'
const DONE_AND_CTRL_C = `zfs "$@"; ${CTRL_C}; exit 0`
const DONE_AND_ENDED = 'zfs "$@"; kill -s KILL $$'

export function interruptedZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  const idsOf = (space: Workspace): string[] => scene.kept(space).map(name => name.split('-').at(-1)!)
  /** In a group of its own, as in a terminal. */
  const inOwnGroup = (space: Workspace, args: string[]) =>
    runCli(space, args, {
      env: { ...space.env, PATH: process.env.PATH },
      detached: true,
    } as SpawnSyncOptions)

  holds('Ctrl-C while a snapshot is taken: what ZFS has is a snapshot of ours', async space => {
    await oneAndTwo(space, snapshot)
    await whileProgram(space, '[ "$1" = snapshot ]', DONE_AND_CTRL_C, async () => {
      inOwnGroup(space, ['snapshot', '-m', 'three'])
    })
    expect(idsOf(space)).toEqual((await space.open()).snapshots().map(({ id }) => id))
  })

  for (const options of [[], ['--json']])
    holds(`a signal to us alone is answered while zfs works (${options})`, async space => {
      await oneAndTwo(space, snapshot)
      const go = join(space.base, 'go')
      run('mkfifo', go)
      await whileProgram(space, '[ "$1" = snapshot ]', `kill -s INT $PPID; read -r _ < '${go}'`, async () => {
        const [program, ...args] = [...builtCommand, ...options, 'snapshot']
        const env = { ...space.env, PATH: process.env.PATH }
        const child = spawn(program!, args, { cwd: space.dir, env, stdio: ['ignore', 'ignore', 'pipe'] })
        let said = ''
        const isAnswered = new Promise<void>(resolve => {
          child.stderr.setEncoding('utf8').on('data', text => {
            said += text
            if (said.includes('\n')) resolve()
          })
        })
        const ended = once(child, 'close')
        await Promise.race([isAnswered, ended])
        // It is still at work: only now it is told to go on.
        const words = 'waiting for `zfs snapshot` to end, 120 s at most'
        expect(said).toBe(options.length > 0 ? `{"notice":"${words}"}\n` : `savepoint: ${words}\n`)
        writeFileSync(go, '\n')
        await ended
      })
      expect(idsOf(space)).toEqual((await space.open()).snapshots().map(({ id }) => id))
    })

  holds('what does not answer is asked once by gc, while others work, and goes with the next one', async space => {
    const { savepoint, one, two } = await oneAndTwo(space, snapshot)
    await snapshot(space, 'three')
    await savepoint.delete(['one', 'two'])
    const later = await space.open({ now: () => Date.now() + WEEK_MS })
    const other = join(space.base, 'other')
    mkdirSync(other)
    const assigned = Object.entries(space.env).map(([name, value]) => `'${name}=${value}'`)
    const others = `cd '${other}' && env ${assigned.join(' ')} ${builtCommand.join(' ')} snapshot > said 2>&1`
    await whileProgram(space, '[ "$1" = get ]', `(${others}); kill -s KILL $$`, () => later.gc().then(() => {}))
    expect(readFileSync(join(other, 'said'), 'utf8')).toMatch(/^snap_/)
    expect(idsOf(space)).toEqual(expect.arrayContaining([one, two]))
    expect(space.notices.slice(-2)).toEqual([
      expect.stringMatching(
        /^a zfs snapshot that nothing needs is still there: Cannot find .*: zfs ended with SIGKILL$/,
      ),
      '1 more that nothing needs were not tried: zfs does not answer',
    ])
    await later.gc()
    expect(idsOf(space)).toHaveLength(1)
  })

  holds('who is killed before a clone is there to be read leaves its directory to the next one', async space => {
    await oneAndTwo(space, snapshot)
    await snapshot(space, 'three')
    const place = join(space.base, 'temporary')
    mkdirSync(place)
    // Of somebody who is at work.
    mkdirSync(join(place, `savepoint-zfs-${processMark()}-x`))
    const look = () => runCli(space, ['status'], { env: { ...space.env, PATH: process.env.PATH, TMPDIR: place } })
    await whileProgram(space, '[ "$1" = clone ]', 'kill -s KILL $PPID', async () => {
      expect(look().signal).toBe('SIGKILL')
    })
    expect(readdirSync(place)).toHaveLength(2)
    expect(look().stdout).toContain('three')
    expect(readdirSync(place)).toEqual([`savepoint-zfs-${processMark()}-x`])
  })

  holds('what does not answer is asked once by who reads, and read by the next one', async space => {
    await oneAndTwo(space, snapshot)
    for (const label of ['three', 'four', 'five']) await snapshot(space, label)
    const asked = join(space.base, 'asked')
    // Each time.
    const isCutOff = `rmdir '${join(space.base, 'programs/done')}'; echo >> '${asked}'; kill -s KILL $$`
    await whileProgram(space, '[ "$1" = get ]', isCutOff, async () => {
      for (const dryRun of [true, false]) await (await space.open({ leaveUnread: dryRun })).prune({ dryRun })
    })
    expect(readFileSync(asked, 'utf8')).toBe('\n\n')
    expect((await space.open()).snapshots().every(({ files }) => files > 0)).toBe(true)
  })

  holds(
    'for copies of what is gone, it is asked once for each snapshot, and once where it does not answer',
    async space => {
      const { savepoint } = await oneAndTwo(space, snapshot)
      for (let i = 0; i < 5; i++) space.write(`excluded-${i}`)
      space.write('.savepointignore', 'excluded*\n')
      await snapshot(space, 'three')
      await snapshot(space, 'four')
      await space.open()
      space.sh('rm excluded*')
      const asked = join(space.base, 'asked')
      const goneWhile = async (then: string) => {
        for (const path of [asked, join(space.base, 'programs')]) rmSync(path, { recursive: true, force: true })
        const each = `rmdir '${join(space.base, 'programs/done')}'; echo >> '${asked}'; ${then}`
        let kept: unknown[] = []
        await whileProgram(space, '[ "$1" = get ]', each, async () => {
          const { gone } = await savepoint.rollback('four', { dryRun: true })
          kept = gone.paths.map(({ kept }) => kept?.backend)
        })
        return [kept, readFileSync(asked, 'utf8')]
      }
      expect(await goneWhile(':')).toEqual([Array(6).fill('zfs'), '\n'])
      expect(await goneWhile('kill -s KILL $$')).toEqual([Array(6).fill(undefined), '\n'])
    },
  )

  holds(
    'Ctrl-C while a copy of what is gone is looked for ends that, and what is done is said without it',
    async space => {
      await oneAndTwo(space, snapshot)
      space.sh('rm excluded')
      const from = Date.now()
      await whileProgram(space, '[ "$1" = get ]', `(${CTRL_C}) & exec sleep 60`, async () => {
        const { stdout, stderr } = inOwnGroup(space, ['rollback', 'one'])
        expect(stderr).toMatch(
          /zfs may keep a copy of what is not captured, but does not say so: .* zfs ended with SIGINT/,
        )
        expect(stdout).toMatch(/^Rolled back to .*\n(.*\n)*.*gone: excluded \(.*cannot be brought back\)$/m)
      })
      expect([Date.now() - from < 50_000, space.read('a')]).toEqual([true, '1\n'])
    },
  )

  holds(
    'what went to a promoted clone is not taken for removed while `zfs` does not tell what there is',
    async space => {
      space.write('a', '1\n')
      await snapshot(space, 'one')
      const [name] = scene.kept(space)
      const [dataset] = name!.split('@')
      const clone = `${dataset}.clone`
      run('zfs', 'clone', '-o', 'mountpoint=none', name!, clone)
      run('zfs', 'promote', clone)
      try {
        await whileProgram(space, 'case "$*" in "get "*" -r "*) ;; *) false ;; esac', 'kill -s KILL $$', async () => {
          await space.open()
        })
        expect(space.notices.at(-1)).toMatch(/is not read yet: Cannot find .*: zfs ended with SIGKILL$/)
        const savepoint = await space.open()
        expect(savepoint.read('one', 'a').toString()).toBe('1\n')
      } finally {
        run('zfs', 'promote', dataset!)
        retried('zfs', 'destroy', clone)
      }
    },
  )

  holds('Ctrl-C while gc waits for an answer ends that, and the next gc removes it', async space => {
    const { two } = await oneAndTwo(space, snapshot)
    await (await space.open({ now: () => Date.now() - WEEK_MS })).delete(['one'])
    const from = Date.now()
    await whileProgram(space, '[ "$1" = get ]', `(${CTRL_C}) & exec sleep 60`, async () => {
      const { status, stderr } = inOwnGroup(space, ['gc'])
      expect(stderr).toMatch(/is still there: Cannot find .*: zfs ended with SIGINT\n/)
      expect(stderr).toContain('Stopped: what nothing needs is still kept\n')
      expect(status).toBe(130)
    })
    expect(Date.now() - from).toBeLessThan(50_000)
    expect(idsOf(space)).toHaveLength(2)
    await (await space.open()).gc()
    expect(idsOf(space)).toEqual([two])
  })

  holds('a snapshot that was made by a `zfs` which could not say so is removed', async space => {
    const { one, two } = await oneAndTwo(space, snapshot)
    await whileProgram(space, '[ "$1" = snapshot ]', DONE_AND_ENDED, async () => {
      await expect(snapshot(space, 'three')).rejects.toMatchObject({
        message: 'Cannot take a ZFS snapshot: zfs ended with SIGKILL',
      })
    })
    expect(idsOf(space)).toEqual([one, two])
  })

  for (const command of ['destroy', 'rollback'])
    holds(`Ctrl-C at zfs ${command} of a rollback: it is completed, and says so`, async space => {
      const { one } = await oneAndTwo(space, snapshot)
      await whileProgram(space, `[ "$1" = ${command} ]`, DONE_AND_CTRL_C, async () => {
        expect(inOwnGroup(space, ['rollback', 'one', '--native'])).toMatchObject({
          status: 0,
          stderr: expect.stringContaining('--native: done, the filesystem is back at'),
        })
      })
      expect([space.read('a'), space.read('excluded'), idsOf(space)]).toEqual(['1\n', 'before\n', [one]])
    })

  holds('Ctrl-C after the files are back: the filesystem goes back, too', async space => {
    const { one } = await oneAndTwo(space, snapshot)
    const NODE_OPTIONS = `--import=${new URL('interrupt-at.ts', import.meta.url)}`
    const env = { ...space.env, NODE_OPTIONS, INTERRUPT_AT: 'native:before-rollback' }
    const { status, stderr } = runCli(space, ['rollback', 'one', '--native'], { env }, sourceCommand)
    expect(stderr).toContain('it has begun and will be completed')
    expect([status, space.read('a'), space.read('excluded'), idsOf(space)]).toEqual([0, '1\n', 'before\n', [one]])
  })

  holds('what fails after the files are back does not say that nothing was changed', async space => {
    const { savepoint } = await oneAndTwo(space, snapshot)
    const filesAreBack = `[ "$1" = get ] && grep -q 1 '${space.at('a')}'`
    await whileProgram(space, filesAreBack, 'exit 1', async () => {
      await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
        message: 'Cannot list ZFS snapshots: zfs ended with 1',
        hint: expect.stringMatching(/^The files are back, as without --native [^.]*\.$/),
      })
    })
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'after\n'])
  })

  holds('a `zfs rollback` that could not say whether it was done: so do we', async space => {
    const { savepoint } = await oneAndTwo(space, snapshot)
    await whileProgram(space, '[ "$1" = rollback ]', DONE_AND_ENDED, async () => {
      await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
        message: 'Cannot tell whether a ZFS dataset has gone back: zfs ended with SIGKILL',
        hint: expect.stringContaining('; what rules exclude may be so, too. zfs has lost '),
      })
    })
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
  })

  holds(
    "what a killed snapshot left is not taken for somebody else's: it goes, and the dataset goes back",
    async space => {
      const { one, two } = await oneAndTwo(space, snapshot)
      const child = startVerbs(space, [['snapshot', {}]], { failpoint: 'native:captured' })
      expect((await finishVerbs(child)).signal).toBe('SIGKILL')
      expect(idsOf(space)).toHaveLength(3)
      const savepoint = await space.open()
      for (const dryRun of [true, false]) {
        space.notices.length = 0
        await savepoint.rollback('two', { native: true, dryRun })
        expect(space.notices.join('\n')).not.toContain('somebody else')
      }
      expect(idsOf(space)).toEqual([one, two])
    },
  )

  holds("what a `zfs` makes that outlived us goes once it has ended, and nothing of another home's", async space => {
    await oneAndTwo(space, snapshot)
    runCli(space, ['snapshot'], { env: { ...space.env, SAVEPOINT_HOME: join(space.base, 'other-home') } })
    const before = scene.kept(space)
    const [go, alive] = ['go', 'alive'].map(name => join(space.base, name))
    run('mkfifo', go!, alive!)
    const outlive = `exec 9<> '${alive}'; kill -s KILL $PPID; read -r _ < '${go}'`
    await whileProgram(space, '[ "$1" = snapshot ]', outlive, async () => {
      const env = { ...space.env, PATH: process.env.PATH }
      expect(runCli(space, ['snapshot'], { env }).signal).toBe('SIGKILL')
    })
    const ended = openSync(alive!, 'r')
    const savepoint = await space.open()
    try {
      expect((await savepoint.gc()).removedKept).toEqual([])
      expect(space.notices.at(-1)).toMatch(/^a zfs snapshot that nothing needs may come: .* is still at work$/)
    } finally {
      writeFileSync(go!, '\n')
      readFileSync(ended)
      closeSync(ended)
    }
    expect([before.length, scene.kept(space).length]).toEqual([3, 4])
    expect((await savepoint.gc()).removedKept).toEqual(['zfs'])
    expect(scene.kept(space)).toEqual(before)
  })

  for (const next of ['gc', 'rollback --native', 'doctor'])
    holds(`what a killed probe left is nobody else's, and goes with the next ${next}`, async space => {
      const { two } = await oneAndTwo(space, snapshot)
      await whileProgram(space, '[ "$1" = destroy ]', 'kill -s KILL $PPID; exit 1', async () => {
        const env = { ...space.env, PATH: process.env.PATH }
        expect(runCli(space, ['doctor'], { env }).signal).toBe('SIGKILL')
      })
      expect(idsOf(space)).toHaveLength(3)
      const savepoint = await space.open()
      space.notices.length = 0
      await savepoint.rollback('two', { native: true, dryRun: true })
      if (next === 'gc') await savepoint.gc()
      else if (next === 'doctor') runCli(space, ['doctor'])
      else await savepoint.rollback('two', { native: true })
      expect(space.notices.join('\n')).not.toMatch(/somebody else|probe/)
      expect([idsOf(space).length, idsOf(space)[1]]).toEqual([2, two])
    })
}
