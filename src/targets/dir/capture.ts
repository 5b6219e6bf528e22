/**
 * Captures a directory into the store: passes over the tree until one sees nothing new, so that the result is a state
 * that really existed; when it never holds still (bounded), the result says `unsettled`. Nothing is visible in history
 * until the caller commits the writer and adds a snapshot.
 */
import { SavepointError } from '../../errors/errors.ts'
import type { GitFactsCache } from '../../files/git-facts.ts'
import type { ExcludeConfig } from '../../files/ignore-rules.ts'
import { blankEntry, type Entry, type Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { type Skipped, UNREAD_ROOT } from '../../model/snapshot.ts'
import { addon } from '../../native/addon.ts'
import { failpoint } from '../../store/failpoint.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { encodeTree } from '../../store/tree-codec.ts'
import { CaptureClock } from './capture-clock.ts'
import { type Dirty, dirtyDirs, distrust, distrustPaths, type HeldFiles, knownDir } from './dirty-dirs.ts'
import { Ingest, type IngestProgress } from './ingest.ts'
import { listSkipped } from './list-skipped.ts'
import { distrustMapped, isStoreUnseen, mappedInodes } from './mapped-files.ts'
import { OpenedPaths, type Opening } from './opened-paths.ts'
import type { PassOptions, PassResult, RuleContext } from './pass.ts'
import type { Preserved } from './preserved.ts'
import { findRacy } from './racy.ts'
import type { WrittenFiles } from './restore-stage.ts'
import { openRules, type RuleOptions } from './rule-context.ts'
import { areAsKnown, changedDirs, dirsToVisit, isWhole, scanKnown } from './scan-known.ts'
import type { StatCache } from './stat-cache.ts'
import { TreeWalk } from './tree-walk.ts'

/** How often a tree that keeps changing is looked at again. */
const MAX_PASSES = 4
/** While git is at work we try on for so long: its directory is small, and a state of it that never was is a broken repository. */
const MAX_GIT_MS = 8000
/** The name of the one entry in a snapshot's root tree. */
export const ROOT_NAME = 'root'
const none: Raw[] = []

export interface CaptureOptions {
  store: Store
  writer: StoreWriter
  /** Descriptor of the target directory, and its absolute path. */
  root: number
  rootPath: Buffer
  /** See RuleOptions. */
  outerPath?: Buffer
  outside?: RuleOptions['outside']
  exclude: ExcludeConfig
  maxFileBytes: number
  loadCache: () => StatCache
  gitCache: GitFactsCache
  env: NodeJS.ProcessEnv
  /** What git's configuration said last; believed. */
  answers?: RuleOptions['answers']
  /** Inode of our own home, when it may lie in the target: never captured. */
  homeIno: bigint | undefined
  /** Root trees whose captured paths are captured whatever the rules and caps say. */
  override?: readonly Id[]
  /** Files that a restore has just written: their content is known. */
  written?: WrittenFiles
  /** Captures this working directory of an interrupted restore too. */
  stage?: Raw
  /** Opens what this user owns but cannot read, for the time of the capture. */
  readOwned?: boolean
  opening: Opening
  /** What may have changed since the state that the cache tells; undefined: anything. */
  dirty?: Dirty
  /** Files that processes of a run can write unseen. */
  held?: HeldFiles
  /** Called after each pass over `dirty`: what was touched since; undefined when that is not known. */
  touchedSince?: () => Promise<Raw[] | undefined>
  /** A run may change the tree meanwhile: what it changes is put aside there before. */
  preserved?: Preserved
  /** It is a state that the filesystem keeps: it holds still, and was the live one at that time. */
  kept?: { atMs: number; mounts: ReadonlySet<Raw> }
  /** A command is at work, or will be, that must not be slowed down. */
  isBackground?: boolean
  onProgress?: (progress: IngestProgress) => void
  onWarning: (text: string) => void
  signal?: AbortSignal
}

export interface CaptureResult {
  /** The root tree for a snapshot: one entry, the target directory. */
  root: Id
  /** The tree of the target directory itself. */
  tree: Id
  cache: StatCache
  changed: boolean
  unsettled: boolean
  files: number
  /** Directories with nothing captured in them: as a change they count like a file. */
  emptyDirs: number
  bytes: number
  skipped: Skipped[]
  /** Only what was said to be dirty was looked at. */
  runOnly: boolean
}

export async function captureDir(options: CaptureOptions): Promise<CaptureResult> {
  const clock = new CaptureClock(options.root)
  const { store, writer, root } = options
  const first = options.preserved && rootEntry(root, '', undefined)
  const ingest = new Ingest(
    store,
    writer,
    root,
    options.onProgress,
    options.signal,
    options.isBackground,
    options.preserved,
  )
  const opened = options.readOwned ? new OpenedPaths(root, options.opening) : undefined
  // Before the rules are read: a closed root hides its .gitignore, too.
  opened?.open('')
  try {
    // git is asked while the cache is being loaded and the directories are listed.
    const opening = openRules(options)
    const cache = options.loadCache()
    // A state that is kept does not change; and it was made with all pages on disk. What is dirty is told by who watches a run.
    const isUnseen = !options.kept && !options.dirty && isStoreUnseen(root)
    const unseen = isUnseen ? mappedInodes(root, options.rootPath) : undefined
    if (unseen) distrustMapped(cache, cache.dirs.keys(), unseen)
    // In a state that is kept, what is under a mount looks as it does without one: before, here, and when it is gone again.
    if (options.kept) distrustPaths(cache, options.kept.mounts)
    const alsoHeld = options.held ? distrust(cache, options.held) : none
    const isPlain = !options.override && !options.written && options.stage === undefined && !opened && !options.dirty
    const [rules, scan] = await Promise.all([opening, isPlain ? scanKnown(root, cache) : undefined])
    options.preserved?.open({ store, writer, root, rules })
    // Of a run, the configuration is fixed. Between two states that are kept, it may have changed.
    const isTold = options.dirty && (!options.kept || isWhole(cache, rules.root.key))
    const dirty = isTold ? dirtyDirs(root, cache, options.dirty!) : undefined
    for (const path of alsoHeld) dirty?.add(path)
    const known = dirty ?? (scan && isWhole(cache, rules.root.key) ? dirsToVisit(cache, scan) : undefined)
    // Before anything is read.
    const isAsked = known?.size !== 0 && !options.kept
    const mapped = unseen ?? (isAsked ? mappedInodes(root, options.rootPath) : undefined)
    const { pass, touched, settled, isOld } =
      known?.size === 0
        ? unchanged(cache)
        : await passUntilQuiet(options, ingest, cache, rules, opened, {
            only: known,
            listed: scan?.listings,
            mayChangeCache: dirty !== undefined,
            clock,
          })
    failpoint('capture:before-root')
    const entry = first ? { ...first, content: pass.tree } : rootEntry(root, pass.tree, opened?.modeOf(''))
    const rootId = writer.put(encodeTree([entry]))
    // Of a state that is kept, the live files may have changed in the tick in which it was taken.
    if (options.kept) distrustPaths(pass.cache, options.kept.mounts)
    if (options.kept) findRacy(pass.cache, touched, options.kept.atMs)
    else if (!isOld) findRacy(pass.cache, touched, clock.startedAtMs)
    // They may be written to until they are unmapped, without another timestamp: the next capture reads them, too.
    if (mapped) distrustMapped(pass.cache, touched, mapped)
    if (options.held) distrust(pass.cache, options.held)
    pass.cache.root = rootId
    // Not after a failure: then nothing is safe.
    await options.preserved?.close()
    const { dirs } = pass.cache
    return {
      root: rootId,
      tree: pass.tree,
      cache: pass.cache,
      changed: touched.size > 0 || pass.changed,
      unsettled: !settled,
      files: dirs.files,
      emptyDirs: dirs.emptyDirs,
      bytes: dirs.bytes,
      runOnly: dirty !== undefined && !options.kept,
      skipped: listSkipped(pass.cache, store, writer),
    }
  } finally {
    opened?.close()
    await ingest.close()
  }
}

interface Quiet {
  pass: PassResult
  touched: Set<Raw>
  settled: boolean
  /** Nothing that was touched is so new that it could change again without a sign. */
  isOld?: boolean
}

function unchanged(cache: StatCache): Quiet {
  const pass: PassResult = {
    tree: cache.dirs.get('')!.tree,
    cache,
    unsettled: new Set(),
    unsettledGit: new Set(),
    changed: false,
    refsMoved: false,
    packLost: false,
    newestListingNs: undefined,
  }
  return { pass, touched: new Set(), settled: true }
}

async function passUntilQuiet(
  options: CaptureOptions,
  ingest: Ingest,
  cache: StatCache,
  rules: RuleContext,
  opened: OpenedPaths | undefined,
  { clock, ...first }: Pick<PassOptions, 'only' | 'listed' | 'mayChangeCache'> & { clock: CaptureClock },
): Promise<Quiet> {
  const shared = {
    ...options,
    ingest,
    cache,
    rules,
    override: (options.override ?? []).map(id => rootTreeOf(options.store, id)),
    written: options.written,
    stage: options.stage,
    mounts: options.kept?.mounts,
    isKept: options.kept !== undefined,
    opened,
    preserved: options.preserved,
    signal: options.signal,
  }
  let pass = await new TreeWalk({ ...shared, ...first, isFirst: true }).run()
  let { changed } = pass
  const touched = new Set(pass.unsettled)
  const deadline = Date.now() + MAX_GIT_MS
  for (let passes = 1; passes <= MAX_PASSES || Date.now() < deadline; passes++) {
    options.writer.prepareCommit()
    if (passes === 1 && !options.touchedSince && clock.areAsAtStart(pass))
      return { pass, touched, settled: true, isOld: true }
    // What had to be made readable is listed otherwise by the walk than by the look.
    if (options.preserved?.isStarted) return seenByRun(options, { ...pass, changed }, touched)
    const since = options.touchedSince ? await options.touchedSince() : none
    for (const path of since ?? none) pass.unsettled.add(knownDir(pass.cache, path))
    const isQuiet =
      pass.unsettled.size === 0 || (!opened && (await areAsKnown(options.root, pass.cache, pass.unsettled)))
    if (isQuiet) return { pass: { ...pass, changed }, touched, settled: since !== undefined }
    // It has begun while we looked: what differs now may be its work.
    if (options.preserved?.isStarted) return seenByRun(options, { ...pass, changed }, touched)
    const isLate = passes >= MAX_PASSES
    const next = await new TreeWalk({
      ...shared,
      cache: pass.cache,
      only: isLate ? pass.unsettledGit : pass.unsettled,
      listed: undefined,
      isFirst: false,
    }).run()
    // The refs stood still from before until after the objects were read: the objects that they need are captured.
    const isSound = !next.refsMoved && !pass.packLost
    if (!next.changed || (isLate && isSound))
      return { pass: { ...pass, changed }, touched, settled: !next.changed && !isLate }
    changed = true
    for (const path of next.unsettled) touched.add(path)
    pass = next
  }
  return { pass: { ...pass, changed }, touched, settled: false }
}

/** For a run that has begun, the state has held still. What others changed meanwhile can only be said. */
async function seenByRun(options: CaptureOptions, pass: PassResult, touched: Set<Raw>) {
  const preserved = options.preserved!
  const changed = await changedDirs(options.root, pass.cache)
  const isOfRun = ({ path, listing }: (typeof changed)[number]) =>
    preserved.isTouched(path) || preserved.isOfShared(pass.cache.dirs.get(path)!.records, listing.records)
  return { pass, touched, settled: changed.every(isOfRun) }
}

/** The tree of the target directory in a snapshot's root tree. */
export function rootTreeOf(store: Store, root: Id): Id {
  return rootEntryOf(store, root).content
}

export function rootEntryOf(store: Store, root: Id): Entry {
  if (root === UNREAD_ROOT) throw unread()
  const [entry, ...rest] = store.tree(root)
  if (entry?.kind === 'dir' && entry.name === ROOT_NAME && rest.length === 0) return entry
  throw new SavepointError('store.damaged', 'Cannot read a snapshot: its root is malformed', {
    hint: 'Run `savepoint verify`',
  })
}

/** Whoever opens a timeline reads what its filesystem keeps; that has failed, and was said, or it was taken since then. */
export const unread = () =>
  new SavepointError('backend.failed', 'Cannot use a snapshot that the filesystem keeps: it is not read yet', {
    hint: 'If it was taken a moment ago, the same command again reads it; in a program, `await savepoint.status()` or `open` does. Otherwise the notice before says why it is not read (-q leaves that out): mount its filesystem; or free some space (`savepoint gc` frees what was deleted more than 7 days ago), or lower snapshots.min_free_bytes. With too little room, `rollback`, `revert` and `export` work all the same, and `rollback SNAP --dry-run` shows what differs',
  })

/** `mode`: when it was changed for the time of the capture. */
function rootEntry(root: number, tree: Id, mode: number | undefined): Entry {
  const stat = addon.statFd(root)
  const entry = blankEntry(ROOT_NAME, 'dir')
  entry.mode = mode ?? stat.mode & 0o7777
  entry.uid = stat.uid
  entry.gid = stat.gid
  entry.content = tree
  const xattrs = addon.getXattrs(root, '')
  if (xattrs.length > 0) entry.xattrs = xattrs
  return entry
}
