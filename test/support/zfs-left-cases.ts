/** ZFS snapshots that do not go, or that a history does not know, and what is said of them. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type PoolScene, run } from './backend-scene.ts'
import { runCli } from './cli.ts'
import type { Workspace } from './workspace.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

const WEEK_MS = 8 * 24 * 60 * 60 * 1000

export function leftInZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds('gc says of one that is held how it is let go, and that not all is done', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    await (await space.open()).snapshot({})
    await (await space.open()).delete(['one'])
    const [held] = scene.kept(space)
    run('zfs', 'hold', 'mine', held!)
    try {
      const later = await space.open({ now: () => Date.now() + WEEK_MS })
      expect(await later.gc()).toMatchObject({ forgottenSnapshots: 1, removedKept: [], stillKept: 1 })
      const { status, stderr } = runCli(space, ['gc'])
      expect([status, stderr]).toEqual([
        3,
        expect.stringContaining(`${held} is held (\`zfs holds ${held}\` says by whom, \`zfs release\` lets it go)\n`),
      ])
      expect(runCli(space, ['gc', '-q'])).toMatchObject({
        status: 3,
        stdout: '',
        stderr: expect.stringMatching(/^savepoint: 1 of what .* could not be removed, .*; `savepoint gc` says why\n$/),
      })
      const json = runCli(space, ['gc', '--json'])
      expect([json.status, JSON.parse(json.stdout)]).toEqual([
        3,
        expect.objectContaining({ removed_kept: 0, still_kept: 1 }),
      ])
    } finally {
      run('zfs', 'release', 'mine', held!)
    }
    expect(runCli(space, ['gc']).status).toBe(0)
    expect(scene.kept(space)).not.toContain(held)
  })

  holds(
    '--native says of a later one that its history, put back from an older copy, does not know whose it is',
    async space => {
      space.write('a', '1\n')
      const older = `${space.home}.older`
      runCli(space, ['snapshot', '-m', 'one'])
      execFileSync('cp', ['-a', space.home, older])
      runCli(space, ['snapshot'])
      const stray = scene.kept(space).at(-1)!
      execFileSync('sh', ['-c', 'rm -r "$1"; mv "$2" "$1"', 'sh', space.home, older])
      const { stderr } = runCli(space, ['rollback', 'one', '--native'])
      expect(stderr).toContain(`zfs loses 1 later snapshot that this timeline does not know any more: ${stray}\n`)
      expect(stderr).toContain('hint: They are of this timeline, which does not know them (was the home put back')
      expect(scene.kept(space)).toContain(stray)
    },
  )

  holds('who may not ask zfs-fuse is told that only root may, and not to use `zfs allow`', async space => {
    const programs = join(space.base, 'programs')
    mkdirSync(programs)
    const said = 'connect: Permission denied\ninternal error: failed to initialize ZFS library'
    writeFileSync(join(programs, 'zfs'), `#!/bin/sh\necho '${said}' >&2; exit 1\n`, { mode: 0o755 })
    const env = { ...space.env, PATH: `${programs}:${process.env.PATH}` }
    const { status, stderr } = runCli(space, ['snapshot', '--backend', 'zfs'], { env })
    expect([status, stderr]).toEqual([
      13,
      expect.stringContaining('\n  hint: zfs-fuse lets only root ask it: be root\n'),
    ])
  })
}
