/** R13, S5: kill -9 at every step of capture, delete, prune, compact, gc and purge. */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runVerbs, type Verb } from './support/engine-process.ts'
import { expectNoLeftovers, homeFiles } from './support/fault-scene.ts'
import { holdsBytes } from './support/raw-scan.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const SECRET = Buffer.from('the-secret-that-leaked-0123456789')

const capturing = [
  'store:before-sync',
  'store:before-index',
  'store:after-index',
  'capture:before-root',
  'capture:before-commit',
  'capture:committed',
  'capture:cached',
  'snapshot:before-row',
  'snapshot:row',
]
const rows = ['delete:before', 'delete:after', 'prune:before', 'prune:after', 'compact:before', 'compact:after']
const collecting = ['gc:marked', 'gc:copied', 'gc:indexed', 'gc:removed']

async function inWorkspace(work: (workspace: Workspace) => Promise<void>): Promise<void> {
  const workspace = new Workspace()
  try {
    await work(workspace)
  } finally {
    workspace.remove()
  }
}

async function kill(workspace: Workspace, failpoint: string, verb: Verb, nowMs?: number): Promise<void> {
  const { signal, error } = await runVerbs(workspace, [verb], { failpoint, nowMs })
  expect({ failpoint, signal, error }).toEqual({ failpoint, signal: 'SIGKILL', error: undefined })
}

async function expectSound(workspace: Workspace): Promise<void> {
  const { problems } = await (await workspace.open()).verify()
  expect(problems).toEqual([])
}

const packFiles = (workspace: Workspace) => readdirSync(join(workspace.home, 'store/packs'))
const packBytes = (workspace: Workspace) =>
  packFiles(workspace).reduce((sum, name) => sum + statSync(join(workspace.home, 'store/packs', name)).size, 0)

test('every failpoint of the source is killed at by a test (those of export and import: with the archives)', () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const inSource = (readdirSync(join(root, 'src'), { recursive: true }) as string[])
    .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .flatMap(file => [...readFileSync(join(root, 'src', file), 'utf8').matchAll(/\bfailpoint\(['`]([^'`]+)['`]\)/g)])
    .flatMap(([, name]) =>
      name!.startsWith('$') ? ['delete', 'prune'].map(kind => name!.replace(/\$\{.*?\}/, kind)) : [name!],
    )
    .filter(name => !/^(export|import):/.test(name))
  const named = [
    'faults-store',
    'faults-restore',
    'restore-as-user',
    'purge-traces',
    'interrupted-run',
    'backends',
    'backend-no-room',
  ]
  const tests = [...named.map(name => `${name}.test.ts`), 'support/zfs-cases.ts', 'support/zfs-rollback-cases.ts']
    .map(name => readFileSync(join(root, 'test', name), 'utf8'))
    .join()
  expect(inSource.length).toBeGreaterThan(20)
  expect(inSource.filter(name => !tests.includes(`'${name}'`) && !tests.includes(`'${name}#`))).toEqual([])
})

describe('snapshot killed at', () => {
  test.concurrent.each(capturing)('%s: the one before is whole, and the next one works', failpoint =>
    inWorkspace(async workspace => {
      workspace.write('a', noise(300_000, 1))
      const first = await workspace.open()
      await first.snapshot({ label: 'before' })
      workspace.write('b', noise(300_000, 2))
      workspace.write('dir/c')
      const wanted = imageOf(workspace.dir)
      await kill(workspace, failpoint, ['snapshot', { label: 'killed' }])
      await expectSound(workspace)
      const savepoint = await workspace.open()
      const labels = savepoint.snapshots().map(snapshot => snapshot.label)
      expect(labels).toEqual(failpoint === 'snapshot:row' ? ['before', 'killed'] : ['before'])
      await savepoint.snapshot({ label: 'after' })
      rmSync(workspace.at('b'))
      await savepoint.rollback('after')
      expect(differences(wanted, imageOf(workspace.dir))).toEqual([])
      await expectSound(workspace)
      expectNoLeftovers(workspace)
    }),
  )

  test.concurrent.each(['store:before-sync', 'store:before-index', 'capture:before-commit'])(
    '%s, the first one and often: leaves no problem and no growing packs (S5)',
    failpoint =>
      inWorkspace(async workspace => {
        workspace.write('a', noise(2_000_000, 1))
        for (let i = 0; i < 3; i++) await kill(workspace, failpoint, ['snapshot'])
        expect(packFiles(workspace).length).toBeLessThanOrEqual(1)
        await expectSound(workspace)
        await (await workspace.open()).snapshot()
        expect(packBytes(workspace)).toBeLessThan(2_200_000)
        expect(packFiles(workspace)).toHaveLength(1)
        await expectSound(workspace)
      }),
  )
})

test.concurrent.each(['database:made', 'database:made#2'])(
  'the very first command killed at %s: the next one works',
  failpoint =>
    inWorkspace(async workspace => {
      workspace.write('a')
      await kill(workspace, failpoint, ['snapshot'])
      await (await workspace.open()).snapshot({ label: 'first' })
      expect((await workspace.open()).snapshots().map(({ label }) => label)).toEqual(['first'])
      await expectSound(workspace)
      expectNoLeftovers(workspace)
    }),
)

/** Three snapshots with 300 kB each that only they need, the second one pruned by rule. */
async function history(workspace: Workspace): Promise<void> {
  const savepoint = await workspace.open()
  for (const [i, type] of (['manual', 'interval', 'manual'] as const).entries()) {
    workspace.write('big', noise(300_000, i))
    await savepoint.snapshot({ label: type === 'manual' ? `s${i}` : undefined, type })
  }
}

describe('rows: killed at', () => {
  test.concurrent.each(rows)('%s: happened wholly or not at all, and undo works', failpoint =>
    inWorkspace(async workspace => {
      await history(workspace)
      const [verb, when] = failpoint.split(':') as [string, string]
      const happened = when === 'after'
      const args: Record<string, unknown> = { delete: ['s0'], prune: { keep: 0 }, compact: ['s0', 's2'] }
      const before = (await workspace.open()).snapshots().map(snapshot => snapshot.id)
      await kill(workspace, failpoint, [verb, args[verb]])
      const savepoint = await workspace.open()
      const now = savepoint.snapshots().map(snapshot => snapshot.id)
      expect(now.length === before.length).toBe(!happened)
      expect(savepoint.operations().map(operation => operation.kind)).toEqual(happened ? [verb] : [])
      if (happened) await savepoint.undo()
      expect(savepoint.snapshots().map(snapshot => snapshot.id)).toEqual(before)
      await expectSound(workspace)
    }),
  )
})

describe('gc killed at', () => {
  test.concurrent.each(['gc:forgotten', ...collecting])(
    '%s again and again: nothing is lost, nothing grows (S5)',
    failpoint =>
      inWorkspace(async workspace => {
        await history(workspace)
        const image = imageOf(workspace.dir)
        await (await workspace.open()).delete(['s0'])
        const later = Date.now() + 8 * DAY_MS
        for (let i = 0; i < 3; i++) {
          const { signal } = await runVerbs(workspace, [['gc']], { failpoint, nowMs: later })
          if (i === 0) expect(signal).toBe('SIGKILL')
          expect(packFiles(workspace).length).toBeLessThanOrEqual(2)
          await expectSound(workspace)
        }
        const savepoint = await workspace.open({ now: () => later })
        await savepoint.gc()
        expect(savepoint.snapshots()).toHaveLength(2)
        expect(packFiles(workspace)).toHaveLength(1)
        expect(packBytes(workspace)).toBeLessThan(650_000)
        rmSync(workspace.at('big'))
        await savepoint.rollback('s2')
        expect(differences(image, imageOf(workspace.dir))).toEqual([])
        await expectSound(workspace)
      }),
  )
})

describe('purge killed at', () => {
  test.concurrent.each(['store:before-index', 'store:after-index', 'purge:forgotten', ...collecting])(
    '%s: the next command completes it, or it can be asked for again (X3)',
    failpoint =>
      inWorkspace(async workspace => {
        workspace.write('secret', SECRET)
        workspace.write('other')
        const first = await workspace.open()
        await first.snapshot({ label: 'one' })
        rmSync(workspace.at('secret'))
        await first.snapshot({ label: 'two' })
        expect(holdsBytes(workspace.home, SECRET)).not.toEqual([])
        await kill(workspace, failpoint, ['purge', 'secret'])
        const savepoint = await workspace.open()
        // Either it never happened, or opening has completed it: it is never half done in silence.
        if (holdsBytes(workspace.home, SECRET).length > 0) await savepoint.purge('secret')
        expect(holdsBytes(workspace.home, SECRET)).toEqual([])
        expect(savepoint.operations().filter(operation => operation.kind === 'purge')).toHaveLength(1)
        expect(savepoint.read('one', 'other').toString()).toBe('other\n')
        await expectSound(workspace)
        expect(homeFiles(workspace).filter(file => file.includes('tmp'))).toEqual([])
      }),
  )
})
