/**
 * A snapshot with an archive: what was captured is in the store as ever, and in a file of its own that needs no Savepoint to be
 * read. The store is what comparisons and restores work with; each of the two can be mended from the other.
 */
import { mkdirSync } from 'node:fs'
import { type ArchiveFormat, type ArchiveState, archiveFile, archivesOf } from '../backends/archive.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { explainArchive } from './archive-file.ts'
import { writeArchive } from './archive-write.ts'
import { checkRoom } from './capture-room.ts'
import type { Context } from './context.ts'
import { removeOwnGoing } from './native-going.ts'
import { noteIntent } from './native-intents.ts'
import type { KeptBeside } from './snapshot.ts'

/** For what was captured just now, under the timeline's lock, which is still held. Its row comes next, then `forgetIntent`. */
export async function archiveLive(ctx: Context, live: Pick<Snapshot, 'root' | 'files' | 'bytes'>): Promise<KeptBeside> {
  const id = ctx.db.newSnapshotId()
  removeOwnGoing(ctx)
  noteIntent(ctx.timelineDir, { backend: 'archive', place: '', name: id })
  const format = ctx.config.snapshots.archive_compression
  const state = await archiveState(ctx, ctx.timelineDir, { ...live, id, createdAt: ctx.now() }, format)
  failpoint('native:captured')
  return { id, backend: 'archive', nativeRef: JSON.stringify(state) }
}

/** Writes it, or writes it again. `directory`: of the timeline. Nobody may collect meanwhile. */
export async function archiveState(
  ctx: Context,
  directory: string,
  state: Pick<Snapshot, 'id' | 'root' | 'createdAt' | 'files' | 'bytes'>,
  format: ArchiveFormat,
): Promise<ArchiveState> {
  const kept = { place: '', name: state.id, format }
  const file = archiveFile(directory, kept)
  try {
    mkdirSync(archivesOf(directory), { recursive: true, mode: 0o700 })
    const how = {
      phase: 'archiving',
      compression: format,
      replace: true,
      leaveOut: () => false,
      check: () => checkRoom(ctx),
    }
    const { bytes, hash } = await writeArchive(ctx, state, Buffer.from(file), how)
    return { ...kept, bytes, hash }
  } catch (error) {
    throw explainArchive(ctx, 'archive', `the snapshot as ${file}`, error)
  }
}
