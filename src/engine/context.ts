/** What every verb works with: one target, its timeline, the store, and the world outside (clock, environment). */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { SavepointError } from '../errors/errors.ts'
import type { BackendName } from '../model/backend-name.ts'
import type { Raw } from '../model/raw-path.ts'
import { type FileLock, type LockWait, lockFile, lockHolder, tryLock } from '../store/file-lock.ts'
import type { Store } from '../store/store.ts'
import { type DirIdentity, isInCopy, lastingIdentity } from '../targets/dir/dir-target.ts'
import type { HeldFiles } from '../targets/dir/dirty-dirs.ts'
import type { Reclosed } from '../targets/dir/opened-paths.ts'
import type { RuleOptions } from '../targets/dir/rule-context.ts'
import type { StatCache } from '../targets/dir/stat-cache.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { LeftToStore } from './kept-limit.ts'
import type { LastTouches } from './last-touches.ts'
import type { Progress } from './results.ts'
import { noteTarget, type RegisteredTarget } from './target-registry.ts'

export interface Context {
  home: string
  /** Why nothing can be stored; undefined when it can. The store and the timeline can then only be read. */
  unwritable: SavepointError | undefined
  timelineId: string
  timelineDir: string
  store: Store
  db: TimelineDb
  /**
   * Stands in for the timeline where there is none (`wholeStore`), and of a directory without one (`provisional`) for the home,
   * too: empty, and gone when it is closed.
   */
  scratch: string | undefined
  /** Absolute path of the target. */
  targetPath: Buffer
  /** Which directory it was when it was last seen; updated when it is made again. */
  identity: DirIdentity
  /** See RegisteredTarget; gone once it is recorded. */
  unrecorded?: RegisteredTarget | undefined
  /** cwd, and cwd relative to the target. */
  cwd: Buffer
  subdirectory: Raw
  config: Config
  /** The backend that whoever opened it has asked for, whatever the configuration says. */
  named: BackendName | undefined
  /** Of the target's savepoint.yaml, as it counts (see trust.ts); undefined: without one. */
  configText: string | undefined
  env: NodeJS.ProcessEnv
  force: boolean
  /** A snapshot that the filesystem keeps is not read at once. */
  leaveUnread: boolean
  /** What is beyond `native_max` stays until somebody has looked whether the store has it (`leaveBeyond`). */
  leaveBeyond: boolean
  /** Whether that is still to come. */
  leftBeyond: boolean
  /** Ids of those that could not be read when it was last tried. */
  notRead: ReadonlySet<string>
  /** What was left to the store when the timeline was opened: whoever prunes has asked for that, too. */
  leftAtOpen: LeftToStore[]
  now: () => number
  notice: (text: string) => void
  /** A notice for whoever wants none, too: what was promised did not come about, or something goes that nothing brings back. */
  alarm: (text: string) => void
  /** A notice that a capture may repeat: each text is said once. */
  warn: (text: string) => void
  progress: ((progress: Progress) => void) | undefined
  signal: AbortSignal | undefined
  onUnstoppable: ((isUnstoppable: boolean) => void) | undefined
  /** How long to wait for another command. */
  lockWaitMs: number
  /** It takes longer than a moment. */
  onWaiting?: (() => void) | undefined
  untilExit: boolean
  /** For a run: what the last capture saw, so that the next one needs no look at what the run has not touched. */
  seen: Seen | undefined
  /** What captures of this process have opened, and closed again. */
  reclosed: Reclosed
  /** While a run goes on in this process: files that its processes can write without another call. */
  heldFiles?: (() => Promise<HeldFiles | undefined>) | undefined
  /** Keeps collection away while results that read lazily are in use. */
  held: FileLock | undefined
  /** The run that this process supervises, for what is asked of it. */
  session?: OwnRun
}

export interface OwnRun {
  run: string
  /** See RunSession. */
  traceSoFar: () => Promise<LastTouches | undefined>
}

/** What a run remembers from one capture to the next. */
export interface Seen {
  cache: StatCache | undefined
  /** `made` of the index that had all of its contents. */
  made?: number
  /** Of git's configuration. */
  answers: RuleOptions['answers']
}

/** Set for the commands of a run, so that an agent cannot by accident destroy what would bring its work back. */
export const RUN_VARIABLE = 'SAVEPOINT_RUN'

/** The run that this process belongs to. */
export const ownRun = (ctx: Pick<Context, 'env'>): string | undefined => ctx.env[RUN_VARIABLE] || undefined

export function refuseInsideRun(ctx: Pick<Context, 'env'>, verb: string): void {
  const run = ownRun(ctx)
  if (!run) return
  throw new SavepointError('run.inside', `Cannot ${verb}: this is a process of ${run}`, {
    hint: 'Do it after the run has ended, from outside of it',
  })
}

/** For everything that changes history: says at once, and in one way, that nothing can be stored. */
export function requireWritable(ctx: Context): void {
  if (ctx.unwritable) throw ctx.unwritable
}

/** From now on the directory that --force took is the target; and so is the snapshot that somebody put in the place of a subvolume. */
export function recordTarget(ctx: Context): void {
  if (!ctx.unrecorded && !isInCopy(ctx.targetPath, ctx.identity)) return
  ctx.identity = lastingIdentity(ctx.targetPath, ctx.identity)
  noteTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity })
  ctx.unrecorded = undefined
}

/** What a timeline is held for while a snapshot is taken. */
export const TAKING = 'take a snapshot'

/** What holds the whole store for long and frees nothing. */
export const CHECKING = 'verify'

/**
 * Until the context is closed, or collects itself, nothing that was looked at is collected by another process. Where it is
 * being checked nobody collects, and nobody waits for that to look.
 */
export async function holdObjects(ctx: Context): Promise<void> {
  if (ctx.held) return
  ctx.held = tryLock(ctx.store.gcLockFile, 'shared', LOOKING)
  if (ctx.held || lockHolder(ctx.store.gcLockFile)?.purpose === CHECKING) return
  ctx.held = await ctx.store.lock('shared', LOOKING, waitOf(ctx))
}

const LOOKING = 'look at the store'

export function releaseObjects(ctx: Context): void {
  ctx.held?.release()
  ctx.held = undefined
}

const waitOf = ({ lockWaitMs: waitMs, signal, onWaiting }: Context): LockWait => ({ waitMs, signal, onWaiting })

/** One writer per timeline: waits a little for another one, then says who it is. */
export async function withTimelineLock<T>(ctx: Context, purpose: string, work: () => Promise<T>): Promise<T> {
  const lock: FileLock = await lockFile(join(ctx.timelineDir, 'lock'), 'exclusive', purpose, waitOf(ctx))
  try {
    return await work()
  } finally {
    lock.release()
  }
}

/** For what is carried out once it has begun: stopping half-way would only leave the rest to the next command. */
export async function unstoppably<T>(ctx: Context, work: (ctx: Context) => Promise<T>): Promise<T> {
  ctx.onUnstoppable?.(true)
  try {
    return await work({ ...ctx, signal: undefined })
  } finally {
    ctx.onUnstoppable?.(false)
  }
}
