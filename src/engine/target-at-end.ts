/** The target directory when a run has ended: where it is by now, whether it is still the same, and what is said of that. */
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Operation, Snapshot } from '../model/snapshot.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import {
  identityOf,
  isInCopy,
  isSubvolumeRoot,
  lastingIdentity,
  obstacleAt,
  statDir,
} from '../targets/dir/dir-target.ts'
import { emptyCache } from '../targets/dir/stat-cache.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { followTarget } from './moved-target.ts'
import { isTarget } from './target-dataset.ts'
import type { Displacer } from './target-place.ts'
import { writeTarget } from './target-registry.ts'
import { refuseUnseen } from './unmounted-target.ts'

interface TargetAtEnd {
  /** Where it has gone, and nothing has taken its place. */
  moved: Buffer | undefined
  isThere: boolean
  /** Another directory is in its place. */
  isReplaced: boolean
  /** That is a plain one, and it was a subvolume. */
  isPlainNow: boolean
}

/** Afterwards the timeline is that of what is found, which is said. Throws where that cannot be seen. `movedTo`: where the run's own directory is, if it was moved. */
export function findTarget(ctx: Context, movedTo: Buffer | undefined, by: Displacer): TargetAtEnd {
  const moved = movedTo && !statDir(ctx.targetPath) ? movedTo : undefined
  if (moved) followTarget(ctx, moved)
  const place = movedTo && showPath(rawFromBytes(movedTo))
  if (moved) ctx.notice(`${displaced('moved', by)} to ${place}${by === 'others' ? '' : '; undo moves it back'}`)
  const stat = statDir(ctx.targetPath)
  const wasSubvolume = isSubvolumeRoot(ctx.identity)
  const isReplaced = stat !== undefined && (!isTarget(ctx, stat) || isInCopy(ctx.targetPath, ctx.identity))
  if (!stat || isReplaced) refuseUnseen(ctx)
  if (isReplaced) ctx.identity = lastingIdentity(ctx.targetPath, identityOf(stat))
  const isPlainNow = isReplaced && wasSubvolume && !isSubvolumeRoot(ctx.identity)
  if (isReplaced) {
    const what = isPlainNow ? `, a plain directory, ${NOT_KEPT}` : ''
    const where = place ? `; the old one is at ${place}` : ''
    ctx.notice(`${displaced('replaced', by)} by another one${what}${where}`)
    writeTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity })
  }
  if (!stat) ctx.notice(describeGone(ctx.targetPath, by))
  return { moved, isThere: stat !== undefined, isReplaced, isPlainNow }
}

const NOT_KEPT = 'which btrfs does not snapshot'

/** What `operation` records of that. */
export const plainDetail = ({ isPlainNow }: TargetAtEnd): Record<string, unknown> =>
  isPlainNow ? { was_subvolume: true } : {}

/** Of an operation that is undone: the files are back, the subvolume is not. */
export function sayIfPlain(ctx: Context, { detail }: Operation): void {
  if (detail.was_subvolume === true && !isSubvolumeRoot(ctx.identity))
    ctx.notice(`the target was a subvolume, and stays a plain directory, ${NOT_KEPT}: see docs/backends.md`)
}

/** What became of the target directory, as far as it is known by whom. */
export const displaced = (how: 'moved' | 'deleted' | 'replaced', by: Displacer): string => {
  if (by === 'run') return `the run ${how} the target directory`
  return `the target directory was ${how} while the run went on${by === 'others' ? ', not by it,' : ''}`
}

function describeGone(path: Buffer, by: Displacer): string {
  const obstacle = obstacleAt(path)
  const word = quoteWord(showPath(rawFromBytes(path)))
  const way = `to take that back: mv ${word} ${word}.aside; savepoint undo -t ${word}`
  if (obstacle && by === 'run') return `the run put ${obstacle} in the place of the target directory; ${way}`
  if (obstacle) return `${obstacle} has taken the place of the target directory; ${way}`
  return `${displaced('deleted', by).replace(/,$/, '')}; \`savepoint undo\` makes it again`
}

/** The state of a target that does not exist: nothing is there. */
export async function captureGone(ctx: Context, before: Snapshot): Promise<Live> {
  const writer = await ctx.store.writer()
  try {
    const tree = writer.put(encodeTree([]))
    const root = writer.put(encodeTree([{ ...rootEntryOf(ctx.store, before.root), content: tree }]))
    writer.commit()
    return {
      root,
      tree,
      cache: emptyCache(),
      changed: true,
      unsettled: false,
      files: 0,
      emptyDirs: 0,
      bytes: 0,
      skipped: [],
      newBytes: writer.newBytes,
      eventsAt: ctx.db.events.beginCapture(),
      runOnly: false,
    }
  } finally {
    writer.close()
  }
}
