/** A workspace that is reached through a mount in another one, which comes and goes. */
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Savepoint } from '../../src/index.ts'
import { run } from './backend-scene.ts'
import type { Workspace } from './workspace.ts'

export function mountedElsewhere(space: () => Workspace, elsewhere: () => Workspace) {
  const point = () => join(elsewhere().base, 'mounted here')
  const target = () => join(point(), basename(space().dir))
  return {
    point,
    target,
    opened: (options: object = {}): Promise<Savepoint> =>
      space().open({ cwd: elsewhere().base, target: target(), home: elsewhere().home, ...options }),
    async whileMounted(work: () => Promise<void>): Promise<void> {
      mkdirSync(point(), { recursive: true })
      run('mount', '--bind', space().base, point())
      try {
        await work()
      } finally {
        run('umount', point())
      }
      space().notices.length = 0
    },
  }
}
