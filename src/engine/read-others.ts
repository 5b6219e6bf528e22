/** Reads what filesystems keep of other directories, and nobody has read yet, for who must know what is in there. */
import { isDamage, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import type { Context } from './context.ts'
import { openTimeline } from './open-timeline.ts'
import type { OpenOptions, Savepoint } from './savepoint.ts'
import { allTargets, type RegisteredTarget } from './target-registry.ts'

/**
 * Called without any lock. `open` reads all of a directory by that directory's own configuration. What cannot be read now is
 * said, and left: whoever looks afterwards finds it unread.
 */
export async function readOthers(ctx: Context, open: (options: OpenOptions) => Promise<Savepoint>): Promise<void> {
  const { home, env, now, signal } = ctx
  for (const target of allTargets(home).filter(each => each.id !== ctx.timelineId && hasUnread(each))) {
    const onNotice = (text: string) => ctx.notice(`${showPath(rawFromBytes(target.path))}: ${text}`)
    const told = { onNotice, ...(ctx.progress && { onProgress: ctx.progress }) }
    const where = { home, cwd: '/', target: target.path.toString() }
    try {
      const other = await open({ ...where, ...told, env, now, ...(signal && { signal }), withoutBrokenConfig: true })
      other.close()
    } catch (error) {
      if (!(error instanceof SavepointError) || error.code === 'cancelled') throw error
      onNotice(error.message)
    }
  }
}

function hasUnread({ directory }: RegisteredTarget): boolean {
  try {
    const db = openTimeline(directory)
    try {
      return db.native.unread().length > 0
    } finally {
      db.close()
    }
  } catch (error) {
    // Who goes over all timelines says so.
    if (isDamage(error)) return false
    throw error
  }
}
