/** What to delete when the store is as large as it may be. It is shared: others may fill it. */
import { formatBytes } from '../model/format.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Context } from './context.ts'
import { allTargets } from './target-registry.ts'

const NAMED = 3
const FREED =
  '`savepoint gc` frees what was deleted more than 7 days ago. To go on at once, raise snapshots.max_store_bytes'

export function howToShrink(ctx: Context, storedBytes: number): string {
  const snapshots = ctx.db.snapshots(true)
  const own = snapshots.reduce((sum, { sizeDelta }) => sum + sizeDelta, 0)
  const others = allTargets(ctx.home).filter(({ id }) => id !== ctx.timelineId)
  if (own < storedBytes / 2 && others.length > 0) {
    const named = others.slice(0, NAMED).map(({ path }) => quoteWord(showPath(rawFromBytes(path))))
    const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : ''
    return `Most of it is of other directories (${named.join(', ')}${more}): \`savepoint prune -t DIR\` or \`savepoint delete -t DIR SNAP\` there; ${FREED}`
  }
  const biggest = snapshots
    .filter(({ deletedAt }) => deletedAt === undefined)
    .sort((a, b) => b.sizeDelta - a.sizeDelta)
    .slice(0, NAMED)
    .map(({ id, sizeDelta }) => `${id} (${formatBytes(sizeDelta)})`)
  return `Run \`savepoint prune\`, or delete the largest: ${biggest.join(', ')}; ${FREED}`
}
