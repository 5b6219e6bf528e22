/** `export`: a snapshot as a tar archive that every tar reads. */
import { GC_LOCK_WAIT_MS } from '../store/store.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import { compressionByName } from './archive-compression.ts'
import { archivePath, explainArchive, shownFile } from './archive-file.ts'
import { refuseExisting, writeArchive } from './archive-write.ts'
import type { Context } from './context.ts'
import { keptMatcher } from './kept-matcher.ts'
import { withLentLocked } from './lent-state.ts'
import type { ExportResult } from './results.ts'
import { missingElsewhere } from './uncaptured-in.ts'

export interface ExportOptions {
  /** With the files that only `exclude.keep` brought into the snapshot, such as .env. */
  withKept?: boolean
}

/** Regular files that match `exclude.keep` are left out unless asked for, whatever git says of them; all are listed. */
export async function exportSnapshot(
  ctx: Context,
  ref: string,
  file: string,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const snapshot = resolveSnapshot(ctx.db, ref)
  const path = archivePath(ctx, 'export', file)
  const compression = compressionByName(file)
  refuseExisting(path, ctx.force)
  const leaveOut = options.withKept ? () => false : keptMatcher(ctx.config.snapshots.exclude.keep)
  // Collection waits: what is being written must not go meanwhile.
  const lock = await ctx.store.lock('shared', 'export a snapshot', { waitMs: GC_LOCK_WAIT_MS, signal: ctx.signal })
  try {
    const how = { phase: 'exporting', compression, replace: ctx.force, leaveOut, check() {} }
    return await withLentLocked(ctx, snapshot, async lent => {
      const { files, bytes, leftOut } = await writeArchive(ctx, lent, path, how)
      return { file: shownFile(path), snapshot, files, bytes, leftOut, uncaptured: missingElsewhere(ctx, lent) }
    })
  } catch (error) {
    throw explainArchive(ctx, 'export', `${snapshot.id} to ${shownFile(path)}`, error)
  } finally {
    lock.release()
  }
}
