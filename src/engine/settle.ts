/** What a restore must find settled: another one that was interrupted is completed first. */
import type { OperationKind } from '../model/snapshot.ts'
import { cannotSave } from './cannot-save.ts'
import { type Context, requireWritable } from './context.ts'
import { type Journal, readJournal } from './journal.ts'
import { recoverPending } from './recover.ts'

/**
 * Where the home cannot be written, a look (`dryRun`) and a restore that records nothing (`noSafety`) go on. Not over an
 * interrupted one, though: its journal would be carried out later, over what was restored now. Returns what it has completed.
 */
export async function settleBefore(
  ctx: Context,
  kind: OperationKind,
  { dryRun, noSafety }: { dryRun?: boolean; noSafety?: boolean },
): Promise<Journal | undefined> {
  if (!ctx.unwritable) return recoverPending(ctx)
  if (dryRun) return undefined
  if (!noSafety) throw cannotSave(kind, ctx.unwritable)
  if (readJournal(ctx.timelineDir)) requireWritable(ctx)
  return undefined
}
