/** A disk that fails while it is mounted: what is said, and what was saved of it can be read and written elsewhere. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { run } from './support/backend-scene.ts'
import { savepoint } from './support/built-cli.ts'
import { gated, isRoot } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const hasXfs = isRoot && spawnSync('mkfs.xfs', ['-V']).status === 0
/** XFS_IOC_GOINGDOWN, without writing anything any more: as when its cable is drawn. */
const FAIL = `import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))`

let space: Workspace
const disk = () => join(space.base, 'disk')
const target = () => join(disk(), 'work')
beforeEach(() => {
  space = new Workspace()
  if (!hasXfs) return
  run('truncate', '-s', '400M', `${disk()}.img`)
  run('mkfs.xfs', '-q', `${disk()}.img`)
  mkdirSync(disk())
  run('mount', '-o', 'loop', `${disk()}.img`, disk())
  mkdirSync(target())
})
afterEach(() => {
  if (hasXfs) run('umount', disk())
  space.remove()
})

gated(hasXfs, 'root and mkfs.xfs', 'a disk that fails is named, and its snapshots are at hand', async () => {
  const opened = () => space.open({ cwd: space.base, target: target() })
  run('sh', '-c', `echo 1 > '${target()}/a'`)
  const { id } = await (await opened()).snapshot()
  run('python3', '-c', FAIL, disk())
  const failed = {
    code: 'io.failed',
    message: `Cannot open ${target()}: the disk has failed, or is gone`,
    hint: expect.stringContaining('--to DIR'),
  }
  const away = await opened()
  for (const work of [() => away.status(), () => away.diff(), () => away.rollback(id)])
    await expect(work()).rejects.toMatchObject(failed)
  const refused = savepoint(space, ['run', '-t', target(), '--', 'true'], { cwd: space.base })
  expect([refused.status, refused.stderr]).toEqual([
    125,
    expect.stringMatching(/the disk has failed, or is gone\)?\n {2}hint:/),
  ])

  expect(away.snapshots().map(each => each.id)).toEqual([id])
  const out = join(space.base, 'out')
  expect(savepoint(space, ['rollback', id, '--to', out, '-t', target()], { cwd: space.base })).toMatchObject({
    status: 0,
  })
  expect(readFileSync(join(out, 'a'), 'utf8')).toBe('1\n')
})
