/** Directories nested deeper than calls can be: every walk over a tree must manage without the stack. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Workspace } from './support/workspace.ts'

const LEVELS = 2500
const TIMEOUT_MS = 240_000

let workspace: Workspace
beforeEach(() => {
  workspace = new Workspace()
})
afterEach(() => {
  // Longer than a path may be, for node as well.
  execFileSync('rm', ['-rf', workspace.dir])
  workspace.remove()
})

/** Goes down one level at a time, since no path reaches that far. With `content`: makes the directories and a file at the end. */
function deepFile(content: string | undefined): string {
  const script = `
import os, sys
levels, content = int(sys.argv[1]), sys.argv[2]
at = os.open('.', os.O_RDONLY)
for _ in range(levels):
    if content: os.mkdir('e', dir_fd=at)
    below = os.open('e', os.O_RDONLY, dir_fd=at)
    os.close(at)
    at = below
if content: os.write(os.open('leaf', os.O_CREAT | os.O_WRONLY, dir_fd=at), content.encode())
print(os.read(os.open('leaf', os.O_RDONLY, dir_fd=at), 100).decode(), end='')`
  return execFileSync('python3', ['-c', script, String(LEVELS), content ?? ''], {
    cwd: workspace.dir,
    encoding: 'utf8',
  })
}

test(`${LEVELS} directories deep: every verb works, and all of it comes back`, { timeout: TIMEOUT_MS }, async () => {
  const savepoint = await workspace.open()
  deepFile('deep')
  workspace.write('keep')
  const full = await savepoint.snapshot({ label: 'full' })
  execFileSync('rm', ['-rf', 'e', 'keep'], { cwd: workspace.dir })
  expect((await savepoint.changes()).changes).toHaveLength(2)
  await savepoint.snapshot({ label: 'empty' })
  expect((await savepoint.diff({ from: 'full', to: 'empty' })).changes).toHaveLength(2)

  expect((await savepoint.rollback('full')).files.created).toBe(2)
  expect(deepFile(undefined)).toBe('deep')
  await savepoint.undo()
  expect(workspace.sh('ls')).toBe('')

  const archive = join(workspace.base, 'deep.tar')
  await savepoint.exportSnapshot('full', archive)
  const imported = await savepoint.importArchive(archive)
  expect(imported.snapshot.root).toBe(full.root)
  expect((await savepoint.purge('keep')).snapshots).toBeGreaterThan(0)
  await savepoint.gc()
  expect((await savepoint.verify()).problems).toEqual([])
})
