/** `open`: finds the target's timeline and gives the object whose methods are the verbs. */
import { existsSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerSignals } from '../backends/run-program.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { lockFile } from '../store/file-lock.ts'
import { giveUpReserve } from '../store/reserve.ts'
import type { Store } from '../store/store.ts'
import { requireHead, resolveSnapshot } from '../timeline/resolve-ref.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { refuseNamedInRun, saidWhoKeeps } from './backend.ts'
import { checkOpenOptions, withCheckedCalls } from './checked-calls.ts'
import { chooseTarget, currentDirectory, noTimeline, ownerOf } from './choose-target.ts'
import { type Context, ownRun, RUN_VARIABLE, refuseInsideRun, releaseObjects } from './context.ts'
import { coverage } from './coverage.ts'
import { beingTaken } from './current-writer.ts'
import { compact, deleteSnapshots, prune } from './delete.ts'
import { changes, diff, diffOfSnapshot, status } from './diff.ts'
import { events } from './events.ts'
import { followTrace } from './follow-trace.ts'
import { gc } from './gc.ts'
import { history } from './history.ts'
import { homeOf, makeHome, openStore, unwritableHome } from './home.ts'
import { isInterrupted, recoverAtOpen } from './interrupted.ts'
import { keptMatcher } from './kept-matcher.ts'
import { leftByPurge } from './left-by-purge.ts'
import { listRuns } from './listed-runs.ts'
import { anyRunAbove, runAbove, undoStops } from './live-runs.ts'
import { branches, listSnapshots, log, logVersion } from './log.ts'
import { followPlaces } from './moved-places.ts'
import { keptBeside } from './native-going.ts'
import { nativeUsage } from './native-ref.ts'
import { rollbackNatively } from './native-rollback.ts'
import { lossNoticed, openTimeline, openTimelineRepaired } from './open-timeline.ts'
import { reachableOperations } from './operations.ts'
import { leaveEndedRun } from './outer-run.ts'
import { placeInTarget } from './place-in-target.ts'
import { processesOfRuns, signalProcess } from './process-list.ts'
import { purge } from './purge.ts'
import { purgeText } from './purge-traces.ts'
import { findEntry, readFile } from './read-content.ts'
import { readAtOpen, readSince, readsAll } from './read-native.ts'
import { resolvePath } from './resolve-path.ts'
import { revert } from './revert.ts'
import { requireRun, rollback } from './rollback.ts'
import { runCommand } from './run.ts'
import type { OpenOptions, Savepoint } from './savepoint.ts'
import { makeScratch } from './scratch.ts'
import { asShown } from './shown-snapshot.ts'
import { takeSnapshot } from './snapshot.ts'
import { subscribe } from './subscribe.ts'
import { deleteTag, setTag } from './tags.ts'
import { configFor } from './target-config.ts'
import type { RegisteredTarget } from './target-registry.ts'
import { restoring, throughLiveRun } from './through-live-run.ts'
import { trace } from './trace.ts'
import { trust } from './trust.ts'
import { mountsIn } from './uncaptured-in.ts'
import { redo, undo } from './undo.ts'
import { haveEventsWritten } from './unwritten-events.ts'
import { verify } from './verify.ts'
import { why } from './why.ts'

/** How long a repair waits for whoever uses the timeline. */
const REPAIR_WAIT_MS = 5_000

export async function open(options: OpenOptions = {}): Promise<Savepoint> {
  checkOpenOptions(options)
  if (options.repair)
    refuseInsideRun({ env: { [RUN_VARIABLE]: anyRunAbove(), ...(options.env ?? process.env) } }, 'repair')
  const ctx = await openContext(options)
  try {
    const loss = options.repair ? undefined : lossNoticed(ctx.timelineDir, ctx.db)
    if (loss !== undefined) ctx.warn(loss)
    leaveEndedRun(ctx)
    const above = ownRun(ctx) === undefined ? (ctx.timelineId === '' ? anyRunAbove() : runAbove(ctx)) : undefined
    if (above !== undefined) ctx.env = { ...ctx.env, [RUN_VARIABLE]: above }
    if (!options.leaveUnread) await followPlaces(ctx)
    if (!options.leaveInterrupted) await recoverAtOpen(ctx, options.leaveStep === true)
    if (options.listsOnly && readsAll(ctx)) ctx.leaveUnread = true
    if (!ctx.leaveUnread) await readAtOpen(ctx)
    if (options.upToDate) await haveEventsWritten(ctx)
  } catch (error) {
    closeContext(ctx)
    throw error
  }
  return withCheckedCalls(toSavepoint(ctx))
}

export async function openContext(options: OpenOptions): Promise<Context> {
  const env = options.env ?? process.env
  if (options.signalNote) answerSignals(options.signalNote)
  const home = homeOf(options, env)
  const notice: NonNullable<OpenOptions['onNotice']> = options.onNotice ?? (() => {})
  const cwd = currentDirectory(home, options.cwd)
  makeHome(home, options.create === true)
  const found = chooseTarget(home, cwd, options, env, notice)
  if (options.makeRoom) giveUpReserve(join(home, 'store'))
  const target = found ?? { ...nowhere, path: cwd }
  const isAsking = found && options.provisional && !existsSync(found.directory)
  const scratch = isAsking || !found ? makeScratch(tmpdir()) : undefined
  const store = openStore(join(isAsking ? scratch! : home, 'store'), options.repair === true, notice)
  const timelineDir = scratch ?? target.directory
  const db = await openTimelineOf(store, timelineDir, options.repair === true, notice)
  const where = { homeDir: home, env, cwd: cwd.toString() }
  const loaded = await configFor(found?.path, where, { db, timelineDir }, options, notice).catch(error => {
    closeFiles({ db, store, scratch })
    throw error
  })
  const unwritable = store.index.unwritable ?? db.unwritable
  return {
    home: existsSync(home) ? realpathSync(home) : home,
    unwritable: isAsking ? noTimeline(target.path) : unwritable && unwritableHome(home, unwritable),
    timelineId: target.id,
    timelineDir,
    scratch,
    store,
    db,
    targetPath: target.path,
    ...ownerOf(target, db),
    cwd,
    subdirectory: placeInTarget(target.path, cwd) ?? '',
    config: loaded.config,
    named: options.backend,
    configText: loaded.targetText,
    env,
    force: options.force ?? false,
    leaveUnread: options.leaveUnread ?? false,
    leaveBeyond: options.leaveBeyond ?? false,
    leftBeyond: false,
    notRead: new Set(),
    leftAtOpen: [],
    now: options.now ?? Date.now,
    notice,
    alarm: text => notice(text, true),
    warn: once(notice),
    progress: options.onProgress,
    signal: options.signal,
    onUnstoppable: options.onUnstoppable,
    lockWaitMs: loaded.lockWaitMs,
    untilExit: options.untilExit ?? false,
    seen: undefined,
    reclosed: new Map(),
    held: undefined,
  }
}

/** What concerns the whole store needs no target: an empty timeline stands in for that of one. */
const nowhere: RegisteredTarget = {
  id: '',
  directory: '',
  path: Buffer.from('/'),
  identity: { ino: '', btimeNs: '' },
}

async function openTimelineOf(
  store: Store,
  directory: string,
  repair: boolean,
  notice: (text: string) => void,
): Promise<TimelineDb> {
  try {
    if (!repair) return openTimeline(directory)
    const wait = { waitMs: REPAIR_WAIT_MS, signal: undefined }
    const lock = await lockFile(join(directory, 'lock'), 'exclusive', 'repair', wait)
    try {
      return openTimelineRepaired(directory, notice)
    } finally {
      lock.release()
    }
  } catch (error) {
    store.close()
    throw error
  }
}

function once(say: (text: string) => void): (text: string) => void {
  const said = new Set<string>()
  return text => {
    if (said.has(text)) return
    said.add(text)
    say(text)
  }
}

export function closeContext(ctx: Context): void {
  releaseObjects(ctx)
  if (!ctx.untilExit || ctx.scratch) closeFiles(ctx)
}

function closeFiles({ db, store, scratch }: Pick<Context, 'db' | 'store' | 'scratch'>): void {
  db.close()
  store.close()
  if (scratch) rmSync(scratch, { recursive: true, force: true })
}

function toSavepoint(ctx: Context): Savepoint {
  const whenRead = async <T>(work: () => Promise<T>): Promise<T> => {
    await readSince(ctx)
    return work()
  }
  return {
    get target() {
      return showPath(rawFromBytes(ctx.targetPath))
    },
    timeline: ctx.timelineId,
    foundAbove: ctx.subdirectory !== '',
    subdirectory: ctx.subdirectory,
    config: ctx.config,
    snapshot: async (options = {}) => {
      refuseNamedInRun(ctx)
      return throughLiveRun(ctx, { op: 'snapshot', ...options }, () =>
        takeSnapshot(ctx, {
          type: 'manual',
          ...options,
          run: options.run === undefined ? ownRun(ctx) : requireRun(ctx, options.run).id,
        }),
      ).then(taken => saidWhoKeeps(ctx, taken))
    },
    snapshots: options => listSnapshots(ctx, options?.run),
    find: ref => asShown(ctx, resolveSnapshot(ctx.db, ref)),
    head: () => asShown(ctx, requireHead(ctx.db)),
    log: () => log(ctx),
    branches: () => branches(ctx),
    version: () => logVersion(ctx),
    isInterrupted: () => isInterrupted(ctx),
    isInPlace: () => ctx.db.isInPlace() && ctx.store.index.isInPlace(),
    undoStops: () => undoStops(ctx),
    beingTaken: () => beingTaken(ctx),
    ownRun: () => ownRun(ctx),
    settle: () => readAtOpen(ctx),
    nativeUsage: ref => nativeUsage(ctx.timelineDir, resolveSnapshot(ctx.db, ref)),
    status: () => whenRead(() => status(ctx)),
    diff: options => whenRead(() => diff(ctx, options ?? {})),
    changes: () => whenRead(() => changes(ctx)),
    mountsIn: ref => mountsIn(ctx, resolveSnapshot(ctx.db, ref)),
    snapshotChanges: ref => diffOfSnapshot(ctx, asShown(ctx, resolveSnapshot(ctx.db, ref))),
    history: path => whenRead(() => history(ctx, path)),
    coverage: path => whenRead(async () => (await coverage(ctx, [path]))[0]!),
    coverages: paths => whenRead(() => coverage(ctx, paths)),
    entry: (ref, path) => findEntry(ctx, ref, path).entry,
    file: (ref, path) => readFile(ctx, ref, path),
    read: (ref, path) => readFile(ctx, ref, path).content,
    isKept: path => keptMatcher(ctx.config.snapshots.exclude.keep)(path),
    rollback: (ref, options = {}) =>
      whenRead(() =>
        options.native
          ? rollbackNatively(ctx, ref, options)
          : restoring(ctx, { op: 'rollback', ref, ...options }, () => rollback(ctx, ref, options)),
      ),
    revert: (path, options = {}) =>
      whenRead(() => restoring(ctx, { op: 'revert', path, ...options }, () => revert(ctx, path, options))),
    undo: (options = {}) => whenRead(() => restoring(ctx, { op: 'undo', ...options }, () => undo(ctx, options))),
    redo: (options = {}) => whenRead(() => restoring(ctx, { op: 'redo', ...options }, () => redo(ctx, options))),
    tags: () => ctx.db.tags(),
    tag: (name, ref) => setTag(ctx, name, ref),
    deleteTag: name => deleteTag(ctx, name),
    delete: refs => deleteSnapshots(ctx, refs),
    compact: (refs, options) => whenRead(() => compact(ctx, refs, options ?? {})),
    prune: options => prune(ctx, options ?? {}),
    operations: () => reachableOperations(ctx.db),
    runs: () => listRuns(ctx),
    trace: run => trace(ctx, run),
    followTrace: (run, onExecution, options) => followTrace(ctx, run, onExecution, options),
    subscribe: (onEvent, options) => subscribe(ctx, onEvent, options),
    processes: () => processesOfRuns(ctx),
    signalProcess: (pid, options) => signalProcess(ctx, pid, options),
    why: (path, options) => why(ctx, path, options),
    events: options => events(ctx, options),
    gc: () => gc(ctx),
    verify: options => verify(ctx, options ?? {}),
    purge: path => purge(ctx, path, open),
    leftByPurge: path => leftByPurge(keptBeside(ctx.db), resolvePath(ctx, path)),
    purgeText: text => purgeText(ctx, text),
    exportSnapshot: (ref, file, options) =>
      whenRead(async () => (await import('./export.ts')).exportSnapshot(ctx, ref, file, options ?? {})),
    importArchive: async (file, options) => (await import('./import.ts')).importArchive(ctx, file, options ?? {}),
    importStates: async (source, make) => (await import('./import-states.ts')).importStates(ctx, source, make),
    run: options => runCommand(ctx, options),
    trust: options => trust(ctx, options ?? {}),
    close: () => closeContext(ctx),
  }
}
