/** What this machine lets a test do. `gated` says in the title of a skipped test what it needs. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestFunction, test } from 'vitest'

export const isRoot = process.getuid!() === 0
export const hasXattrs = probeXattrs()
export const canMount = isRoot && probeMount()

/** Runs the test when `possible`; otherwise it is skipped and its title names what is missing. */
export function gated(possible: boolean, needs: string, title: string, work: TestFunction): void {
  if (possible) test(title, work)
  else test.skip(`${title} (skipped: needs ${needs})`, work)
}

/** user.* attributes on the filesystem of temporary files, and the tools to set and list them. */
function probeXattrs(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'savepoint-probe-'))
  try {
    const file = join(dir, 'file')
    writeFileSync(file, '')
    const set = spawnSync('setfattr', ['-n', 'user.probe', '-v', '1', file])
    return set.status === 0 && spawnSync('getfattr', [file]).status === 0
  } finally {
    rmSync(dir, { recursive: true })
  }
}

function probeMount(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'savepoint-probe-'))
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', dir]).status !== 0) return false
    return spawnSync('umount', [dir]).status === 0
  } finally {
    rmSync(dir, { recursive: true })
  }
}
