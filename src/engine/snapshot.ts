/** `snapshot`: captures the target and adds a point to its timeline. */
import { isDamage, SavepointError } from '../errors/errors.ts'
import type { Snapshot, SnapshotType, Turn } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { chooseNative } from './backend.ts'
import { captureLive, checkIdentity, explainCapture, type Live, type LiveOptions } from './capture-live.ts'
import { type Context, TAKING, withTimelineLock } from './context.ts'
import { keepWithinLimits } from './kept-limit.ts'
import { sayWhatLeft } from './left-history.ts'
import { checkLabel } from './names.ts'
import { forgetIntent } from './native-intents.ts'
import { takeNative } from './native-snapshot.ts'
import { readUnread } from './read-native.ts'
import { recoverPending } from './recover.ts'
import { isNamed } from './retention.ts'
import type { SnapshotOptions } from './savepoint.ts'
import { readAncestor } from './shown-snapshot.ts'
import { type Differences, differencesOf, startOf, withSnapshotEvents } from './snapshot-events.ts'
import { thinOut } from './thin-out.ts'

export interface TakeOptions {
  type: SnapshotType
  label?: string
  run?: string
  command?: string
  turn?: Turn
  holdsOthers?: boolean
}

export async function takeSnapshot(
  ctx: Context,
  {
    preserved,
    onlyIfChanged,
    ...options
  }: TakeOptions & Pick<LiveOptions, 'preserved'> & Pick<SnapshotOptions, 'onlyIfChanged'>,
): Promise<Snapshot> {
  if (ctx.config.snapshots.disabled) {
    throw new SavepointError('snapshots.disabled', 'Cannot take a snapshot: snapshots.disabled is set', {
      hint: 'Remove snapshots.disabled from savepoint.yaml or config.yaml',
    })
  }
  if (options.label !== undefined) checkLabel(options.label)
  return withTimelineLock(ctx, TAKING, async () => {
    await recoverPending(ctx)
    if (options.type === 'manual') checkManualPool(ctx)
    // Before anybody is asked to keep it: to find out who can, a probe makes a snapshot.
    checkIdentity(ctx)
    const native = mayBeNative(ctx, options.type) ? chooseNative(ctx) : undefined
    // Whether anything has changed is known only to those who look.
    if (native && options.type === 'manual' && !onlyIfChanged)
      return takenNatively(ctx, await explainedLater(ctx, takeNative(ctx, native, options)))
    await readUnread(ctx)
    const live = await captureLive(ctx, { preserved })
    const head = readAncestor(ctx, ctx.db.head)
    if (onlyIfChanged && head?.id === ctx.db.head && head?.root === live.root) return head
    if (head) unlessDamaged(() => sayWhatLeft(ctx, head, live.root))
    const kept = wantsArchive(ctx, options.type)
      ? await (await import('./archive-snapshot.ts')).archiveLive(ctx, live)
      : undefined
    return explained(ctx, () => {
      const snapshot = addSnapshot(ctx, live, options, kept)
      if (kept) {
        forgetIntent(ctx.timelineDir, kept.id)
        keepWithinLimits(ctx)
      }
      // Those of an agent's hooks have no run that would do it.
      if (snapshot.type === 'turn') thinOut(ctx)
      return snapshot
    })
  })
}

/** Only what somebody asks for: a run takes many, and has no time to write all of it each time. */
const wantsArchive = (ctx: Context, type: SnapshotType): boolean =>
  ctx.config.snapshots.backend === 'archive' && isAskedFor(ctx, type)

const isAskedFor = (ctx: Context, type: SnapshotType): boolean =>
  type === 'manual' && ctx.session === undefined && ctx.seen === undefined

/**
 * The process of a run knows what changed, and needs to know what there is. But where one is named that does not work here, a
 * run is not begun either.
 */
function mayBeNative(ctx: Context, type: SnapshotType): boolean {
  if (type === 'pre-run') return ctx.config.snapshots.backend !== 'auto'
  return isAskedFor(ctx, type)
}

async function takenNatively(ctx: Context, snapshot: Snapshot): Promise<Snapshot> {
  if (!ctx.leaveUnread) await readUnread(ctx)
  return ctx.db.snapshot(snapshot.id)!
}

/** The captured state has found room, its row has not. */
export function explained<T>(ctx: Context, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw explainCapture(ctx, error)
  }
}

const explainedLater = <T>(ctx: Context, work: Promise<T>): Promise<T> =>
  work.catch(error => {
    throw explainCapture(ctx, error)
  })

/** What a row says of a state. */
export type State = Pick<
  Live,
  'root' | 'newBytes' | 'files' | 'emptyDirs' | 'bytes' | 'skipped' | 'unsettled' | 'runOnly' | 'eventsAt'
>

/** Who has it beside the store. */
export interface KeptBeside {
  id: string
  backend: string
  nativeRef: string
}

/** Adds a row for a captured state and moves HEAD to it: the live state is exactly that. */
export function addSnapshot(ctx: Context, live: State, options: TakeOptions, kept?: KeptBeside): Snapshot {
  // Of a timeline that was salvaged, its row may be lost.
  const parent = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)?.id
  failpoint('snapshot:before-row')
  const differences = differencesFrom(ctx, readAncestor(ctx, parent), live)
  const add = () =>
    ctx.db.addSnapshot(
      {
        parent,
        type: options.type,
        label: options.label,
        createdAt: ctx.now(),
        root: live.root,
        run: options.run,
        command: options.command,
        backend: kept?.backend ?? 'cas',
        nativeRef: kept?.nativeRef,
        sizeDelta: live.newBytes,
        counts: differences.counts,
        files: live.files,
        bytes: live.bytes,
        skippedCount: live.skipped.length,
        skipped: live.skipped,
        unsettled: live.unsettled,
        runOnly: live.runOnly,
        holdsOthers: options.holdsOthers,
        turn: options.turn,
      },
      kept?.id,
    )
  const snapshot = ctx.db.transaction(() => {
    const added = withSnapshotEvents(ctx, differences, live.eventsAt, add)
    ctx.db.setHead(added.id)
    return added
  })
  failpoint('snapshot:row')
  return snapshot
}

/** Against a parent of which the store has lost something, all counts as new: that must not stop further snapshots. */
export function differencesFrom(ctx: Context, parent: Snapshot | undefined, live: State): Differences {
  const known =
    parent &&
    unlessDamaged(() =>
      differencesOf(ctx, stateChanges(ctx.store, parent.root, live.root), startOf(ctx, live.eventsAt)),
    )
  if (known) return known
  return { counts: { added: live.files + live.emptyDirs, modified: 0, deleted: 0 }, events: [], unlisted: 0 }
}

export function unlessDamaged<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!isDamage(error)) throw error
    return undefined
  }
}

/** Throws when snapshots.retention.manual_max allows no further named snapshot. */
export function checkManualPool(ctx: Context): void {
  const limit = ctx.config.snapshots.retention.manual_max
  if (limit === Number.POSITIVE_INFINITY) return
  const tagged = new Set(ctx.db.tags().values())
  const named = ctx.db.snapshots().filter(snapshot => isNamed(snapshot, tagged))
  if (named.length < limit) return
  throw new SavepointError(
    'pool.full',
    `Cannot take a manual snapshot: there are ${named.length}, and snapshots.retention.manual_max is ${limit}`,
    {
      hint: `Delete or compact one first, for example \`savepoint delete ${named[0]?.id}\``,
    },
  )
}
