/** What `verify` says of an archive: whether it is what was written, and what of archive and store can mend the other. */
import { archiveFile } from '../backends/archive.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { OpenTimeline } from './all-timelines.ts'
import { archiveDamageInFull, archiveOf } from './archive-check.ts'
import { archiveState } from './archive-snapshot.ts'
import type { Context } from './context.ts'
import type { VerifyProblem } from './results.ts'

export interface ArchiveVerdict {
  problem?: VerifyProblem
  repaired?: string
  /** For the problem of a snapshot of which the store has lost something. */
  wayBack?: string
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
  if (damage === undefined) return { wayBack: `: its archive is whole, \`savepoint import ${file}\` stores that again` }
  if (repair && isWhole) {
    const written = await archiveState(ctx, directory, { ...snapshot, id: state.name }, state.format)
    db.native.setRef(snapshot.nativeRef!, JSON.stringify(written))
    return { repaired: `${file}: it ${damage.replace(/^is /, 'was ')}; written again` }
  }
  const mend = isWhole ? ': the store has all of it, and `savepoint verify --repair` writes it again' : ''
  return { problem: { what: `${file} ${damage}${mend}`, snapshots: [snapshot.id], paths: [] } }
}
