/** What the store costs: nothing twice, an edit in a large file a few megabytes, bounded memory (S7). */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { runVerbs } from './support/engine-process.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const MB = 1_000_000
/** Making so many files takes a busy disk most of a minute. */
const WIDE_TIMEOUT_MS = 300_000

let workspace: Workspace
afterEach(() => workspace.remove())

test('the same content is stored once: twice in a tree, in two snapshots, in two timelines', async () => {
  workspace = new Workspace()
  const content = noise(800_000, 1)
  workspace.write('a', content)
  workspace.write('deep/b', content)
  const first = await workspace.open()
  expect((await first.snapshot()).sizeDelta).toBeLessThan(810_000)
  workspace.write('c', content)
  expect((await first.snapshot()).sizeDelta).toBeLessThan(5_000)
  const second = join(workspace.base, 'second')
  mkdirSync(second)
  writeFileSync(join(second, 'd'), content)
  const other = await workspace.open({ cwd: second })
  const { id, sizeDelta } = await other.snapshot()
  expect(sizeDelta).toBeLessThan(5_000)
  expect(other.read(id, 'd').equals(content)).toBe(true)
})

test('an unchanged tree and a mere chmod cost next to nothing', async () => {
  workspace = new Workspace()
  for (let i = 0; i < 200; i++) workspace.write(`d${i % 10}/f${i}`, noise(3_000, i))
  const savepoint = await workspace.open()
  await savepoint.snapshot()
  expect((await savepoint.snapshot()).sizeDelta).toBe(0)
  workspace.sh('chmod 600 d1/f1')
  expect((await savepoint.snapshot()).sizeDelta).toBeLessThan(6_000)
})

test('looking stores nothing: what was looked at counts for the snapshot that has it', async () => {
  workspace = new Workspace()
  workspace.write('a', 'one')
  const savepoint = await workspace.open()
  await savepoint.snapshot({ label: 'one' })
  workspace.write('large', noise(2_000_000, 1))
  workspace.write('text', 'new\n')
  const { storeBytes } = await savepoint.status()
  await savepoint.coverage('large')
  await savepoint.rollback('one', { dryRun: true })
  const { changes, content } = await savepoint.diff({})
  expect(content(changes.find(({ path }) => path === 'text')!, 'after')!.toString()).toBe('new\n')
  expect((await savepoint.status()).storeBytes).toBe(storeBytes)
  expect((await savepoint.snapshot()).sizeDelta).toBeGreaterThan(2_000_000)
})

test('a cap that is set later counts from then on, also for files that did not change', async () => {
  workspace = new Workspace()
  workspace.write('a', noise(5_000, 1))
  const savepoint = await workspace.open()
  // As long as the file is so young that it is in doubt, it would be read again anyway.
  const { ctimeMs } = statSync(workspace.at('a'))
  for (let startedAt = 0; startedAt < ctimeMs + 100; await savepoint.snapshot()) startedAt = Date.now()
  writeFileSync(join(workspace.home, 'config.yaml'), 'snapshots:\n  max_file_bytes: 1 kB\n')
  expect(await (await workspace.open()).coverage('a')).toMatchObject({ covered: false, reason: 'too-large' })
})

test('files in doubt after a snapshot are read once more, not at every look', async () => {
  workspace = new Workspace()
  const savepoint = await workspace.open()
  workspace.write('just-written', noise(100_000, 1))
  await savepoint.snapshot()
  const cache = join(workspace.home, 'timelines', savepoint.timeline, 'statcache')
  // As if all were in doubt.
  rmSync(cache)
  expect((await savepoint.status()).changes).toEqual([])
  expect(existsSync(cache)).toBe(true)
})

test('an edit, an insertion and a removal in the middle of a large file store less than 6 MB each', async () => {
  workspace = new Workspace()
  const size = 64 * 1024 * 1024
  const content = noise(size, 1)
  workspace.write('large', content)
  const savepoint = await workspace.open()
  await savepoint.snapshot({ label: 'whole' })
  const middle = size / 2
  const edits: Record<string, Buffer> = {
    edited: Buffer.concat([content.subarray(0, middle), Buffer.from('edit'), content.subarray(middle + 4)]),
    inserted: Buffer.concat([content.subarray(0, middle), Buffer.from('some more bytes'), content.subarray(middle)]),
    removed: Buffer.concat([content.subarray(0, middle), content.subarray(middle + 1_000)]),
  }
  for (const [label, bytes] of Object.entries(edits)) {
    workspace.write('large', bytes)
    const { sizeDelta } = await savepoint.snapshot({ label })
    expect(sizeDelta, label).toBeGreaterThan(0)
    expect(sizeDelta, label).toBeLessThan(6 * MB)
  }
  await savepoint.rollback('inserted')
  expect(readFileSync(workspace.at('large')).equals(edits.inserted!)).toBe(true)
  await savepoint.rollback('whole')
  expect(readFileSync(workspace.at('large')).equals(content)).toBe(true)
})

test('S7 a sparse file of 2 GB: captured and restored in less than 300 MB of memory, and still sparse', async () => {
  workspace = new Workspace()
  const size = 2 * 1024 ** 3
  const fd = openSync(workspace.at('disk.img'), 'w')
  ftruncateSync(fd, size)
  for (const at of [0, 1_000_000_000, size - 5_000]) writeSync(fd, noise(4_000, 5), 0, 4_000, at)
  closeSync(fd)
  const captured = await runVerbs(workspace, [['snapshot', { label: 'one' }]])
  expect(captured.error).toBeUndefined()
  expect(captured.results[0].sizeDelta).toBeLessThan(MB)
  expect(captured.peakBytes).toBeLessThan(300 * MB)
  truncateSync(workspace.at('disk.img'), 10)
  const restored = await runVerbs(workspace, [['rollback', 'one']])
  expect(restored.error).toBeUndefined()
  expect(restored.peakBytes).toBeLessThan(300 * MB)
  const stat = statSync(workspace.at('disk.img'))
  expect([stat.size, stat.blocks * 512 < MB]).toEqual([size, true])
})

test(
  'S7 a directory of 200,000 entries: captured and rolled back in less than 600 MB of memory',
  async () => {
    workspace = new Workspace()
    const entries = 200_000
    mkdirSync(workspace.at('wide'))
    for (let i = 0; i < entries; i++) closeSync(openSync(workspace.at(`wide/an-entry-of-a-wide-directory-${i}`), 'w'))
    const captured = await runVerbs(workspace, [['snapshot', { label: 'one' }]])
    expect(captured.error).toBeUndefined()
    expect(captured.results[0].files).toBe(entries)
    expect(captured.peakBytes).toBeLessThan(600 * MB)
    for (let i = 0; i < 50; i++) rmSync(workspace.at(`wide/an-entry-of-a-wide-directory-${i * 7}`))
    const restored = await runVerbs(workspace, [['rollback', 'one']])
    expect(restored.error).toBeUndefined()
    expect(restored.results[0].files.created).toBe(50)
    // It captures twice, and compares versions of the directory without holding them.
    expect(restored.peakBytes).toBeLessThan(600 * MB)
  },
  WIDE_TIMEOUT_MS,
)
