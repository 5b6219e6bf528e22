/** What `verify` says of an archive: whether it is what was written, and what of archive and store can mend the other. */
import { type ArchiveFormat, archiveFile } from '../backends/archive.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { OpenTimeline } from './all-timelines.ts'
import { archiveDamageInFull, archiveOf } from './archive-check.ts'
import { archiveState } from './archive-snapshot.ts'
import { importLimits, ofOurOwn } from './archive-unsafe.ts'
import type { Context } from './context.ts'
import { storeArchive } from './import.ts'
import type { VerifyProblem } from './results.ts'

export interface ArchiveVerdict {
  problem?: VerifyProblem
  repaired?: string
  /** Whether it can give back what the store has lost. */
  isWhole?: boolean
}

/** With everything locked. `isWhole`: the store has all of the snapshot. */
export async function verifyArchive(
  ctx: Context,
  { target: { directory }, db }: OpenTimeline,
  snapshot: Snapshot,
  { isWhole, repair = false }: { isWhole: boolean; repair?: boolean },
): Promise<ArchiveVerdict> {
  const state = archiveOf(snapshot)
  if (!state) return {}
  const file = archiveFile(directory, state)
  const damage = archiveDamageInFull(directory, snapshot)
  if (damage === undefined) return { isWhole: true }
  if (repair && isWhole) {
    try {
      const written = await archiveState(ctx, directory, { ...snapshot, id: state.name }, state.format)
      db.native.setRef(snapshot.nativeRef!, JSON.stringify(written))
      return {
        repaired: `${file}: it ${damage.replace(/^is /, 'was ').replace(/^cannot /, 'could not ')}; written again`,
      }
    } catch (error) {
      // The others can be mended all the same.
      if (!(error instanceof SavepointError) || error.code === 'cancelled') throw error
      return { problem: { what: `${file} ${damage}. ${error.message}`, snapshots: [snapshot.id], paths: [] } }
    }
  }
  const mend = isWhole ? ': the store has all of it, and `savepoint verify --repair` writes it again' : ''
  return { problem: { what: `${file} ${damage}${mend}`, snapshots: [snapshot.id], paths: [] } }
}

/**
 * Stores again what the store has lost of snapshots whose archives are whole. With everything locked, and the index made anew;
 * afterwards the packs are others. Says what it did.
 */
export async function storeLostFromArchives(
  ctx: Context,
  timelines: readonly OpenTimeline[],
  isLost: (snapshot: Snapshot) => boolean,
): Promise<string[]> {
  const done: string[] = []
  for (const { target, db } of timelines) {
    for (const snapshot of db.damage() === undefined ? db.snapshots(true) : []) {
      const state = archiveOf(snapshot)
      if (!state || !isLost(snapshot) || archiveDamageInFull(target.directory, snapshot) !== undefined) continue
      const file = archiveFile(target.directory, state)
      if (await isStored(ctx, file, state.format))
        done.push(`what ${snapshot.id} had lost is stored again from ${file}`)
    }
  }
  ctx.store.refresh()
  return done
}

/** It is ours, by its checksum: nothing about it is suspicious, and limits of today are not about what was captured before. */
async function isStored(context: Context, file: string, format: ArchiveFormat): Promise<boolean> {
  const snapshots = { ...context.config.snapshots, max_file_bytes: Number.POSITIVE_INFINITY }
  const ctx: Context = { ...context, config: { ...context.config, snapshots } }
  const writer = ctx.store.exclusiveWriter()
  try {
    await storeArchive(ctx, Buffer.from(file), format, writer, ofOurOwn(importLimits))
    writer.commit()
    return true
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    ctx.warn(`${file} could not be stored again: ${(error as Error).message}`)
    return false
  } finally {
    writer.close()
  }
}
