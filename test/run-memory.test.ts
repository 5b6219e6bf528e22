/** What a run keeps in memory while its command goes on, perhaps for days: nothing of the capture that it began with. */
import { execFileSync } from 'node:child_process'
import { queryObjects } from 'node:v8'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { EntryCapture } from '../src/targets/dir/entry-capture.ts'
import { StoredDir } from '../src/targets/dir/stored-dir.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const countOf = (which: typeof EntryCapture | typeof StoredDir) => queryObjects(which, { format: 'count' })

/** Enough for the command to begin before the capture is over. */
const makeTree = `
import os
for i in range(200):
    os.makedirs(f"d{i}")
    for j in range(30):
        with open(f"d{i}/f{j}", "w") as f: f.write(f"{i} {j}")
`

it('of a tree that was never seen, and of one that was', async () => {
  execFileSync('python3', ['-c', makeTree], { cwd: space.dir })
  // As the command line has one, which lasts as long as the run.
  const savepoint = await space.open({ signal: new AbortController().signal })
  for (const [i, name] of ['first', 'second'].entries()) {
    const running = savepoint.run({ command: ['sh', '-c', `while [ ! -e ${name} ]; do sleep 0.05; done`] })
    await vi.waitFor(async () => expect((await savepoint.runs())[i]?.before).toBeDefined(), 10_000)
    try {
      // Its last steps may be under way still.
      await vi.waitFor(() => expect(countOf(EntryCapture)).toBe(0), 5000)
      // Of each directory (the root may have changed since), with its records in the file.
      expect(countOf(StoredDir)).toBeGreaterThanOrEqual(200)
    } finally {
      space.write(name, '')
      await running
    }
  }
})
