/** A snapshot on the way of a run: of what the run was seen to touch, with what it destroyed since the one before. */
import { SavepointError } from '../errors/errors.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { HeldFiles } from '../targets/dir/dirty-dirs.ts'
import { captureLive, type RunDirty } from './capture-live.ts'
import { type Context, TAKING, withTimelineLock } from './context.ts'
import { isInSnapshot } from './former-target.ts'
import { addKept } from './kept-files.ts'
import { recoverPending } from './recover.ts'
import { addSnapshot, explained, type TakeOptions } from './snapshot.ts'
import { thinOut } from './thin-out.ts'

export interface RunSnapshotOptions extends TakeOptions {
  run: string
  /** Only this is looked at, if what it counts from is known. */
  dirty?: RunDirty
  /** Files that processes can write unseen. */
  held?: HeldFiles
  /** It is of what was the target before. */
  isFormer?: boolean
  /** The label, asked for when all is captured. */
  labelNow?: () => Promise<string | undefined>
}

/** Undefined when it would say nothing new: the same state, and of a test or build, that it ended the same way. A commit is news. */
export function takeIfChanged(ctx: Context, options: RunSnapshotOptions): Promise<Snapshot | undefined> {
  const { dirty, held, isFormer, labelNow, ...rest } = options
  return withTimelineLock(ctx, TAKING, async () => {
    await recoverPending(ctx)
    const live = await captureLive(ctx, { dirty, held })
    await addKept(ctx, options.run)
    const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
    // The label of a guard is no news of the state.
    const result = rest.type === 'guard' ? undefined : rest.label
    const hasResult = result !== undefined && (head?.label !== result || head.type !== rest.type)
    const isNews = hasResult || rest.type === 'git'
    if (isFormer ? isInSnapshot(ctx, live.root) : head?.root === live.root && !isNews) return undefined
    const label = labelNow ? await labelNow() : rest.label
    return explained(ctx, () => {
      const snapshot = addSnapshot(ctx, live, { ...rest, label })
      thinOut(ctx)
      return snapshot
    })
  }).catch(error => {
    sayWhatHelps(ctx, error)
    throw error
  })
}

/** Who waits for it says that it failed, over and over; what to do about it is said once. */
function sayWhatHelps(ctx: Context, error: unknown): void {
  if (!(error instanceof SavepointError) || error.code !== 'disk.full' || error.hint === undefined) return
  ctx.warn(`no snapshots until the store has room. ${error.hint}`)
}
