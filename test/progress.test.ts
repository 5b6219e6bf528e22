/** What long work reports of itself: never more than the whole. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Progress } from '../src/index.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

it('no phase counts more files or bytes than its totals say, and each comes to its end', async () => {
  for (let i = 0; i < 400; i++) space.write(`dir${i}/sub/file`, `content ${i}`)
  space.sh('ln -s dir1 link; mkdir empty; mkfifo pipe; head -c 20000000 /dev/urandom > large')
  const reports: Progress[] = []
  const savepoint = await space.open({ onProgress: progress => reports.push({ ...progress }) })
  await savepoint.snapshot({ label: 'all' })
  space.sh('rm -r dir1* large; echo other > dir2/sub/file')
  await savepoint.rollback('all')
  const last = new Map(reports.map(report => [report.phase, report]))
  expect([...last.keys()]).toEqual(expect.arrayContaining(['capturing', 'restoring', 'checking']))
  for (const { phase, files, bytes, totalFiles, totalBytes } of reports) {
    expect([phase, files <= totalFiles!, bytes <= totalBytes!, files, bytes]).toEqual([phase, true, true, files, bytes])
  }
  for (const { phase, files, bytes, totalFiles, totalBytes } of last.values())
    expect([phase, files, bytes]).toEqual([phase, totalFiles, totalBytes])
})

it('counts what a snapshot counts: files, not directories', async () => {
  for (let i = 0; i < 50; i++) space.write(`dir${i}/sub/file`, `content ${i}`)
  space.sh('ln -s dir1 link; mkdir empty')
  const reports: Progress[] = []
  const savepoint = await space.open({ onProgress: progress => reports.push({ ...progress }) })
  const { files } = await savepoint.snapshot()
  expect(reports.at(-1)).toMatchObject({ files, totalFiles: files })
})
