/**
 * `bundle restore`: the state before or after a recorded command, in another directory or in place. What is there is not overwritten
 * unless it is as the command left it, and what is replaced is kept in a bundle first. Carried out as a rollback is.
 */
import { lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isOurs } from '../engine/choose-target.ts'
import { homeOf, makeHome } from '../engine/home.ts'
import type { OpenOptions } from '../engine/savepoint.ts'
import { makeScratch } from '../engine/scratch.ts'
import { cancelled, errnoWords, SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import { isWithin, type Raw, rawFromText, rawToBytes, showPath } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { applyPlan } from '../targets/dir/restore-apply.ts'
import { planRestore, type RestorePlan } from '../targets/dir/restore-plan.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import { applyRoots, type RootPlan } from './apply-roots.ts'
import type { Bundle, BundleFile } from './bundle.ts'
import { BundleContents } from './bundle-contents.ts'
import { Unstable } from './content.ts'
import { isEdited } from './edited-since.ts'
import { isChanged } from './entries.ts'
import { clearKilled, clearUnbegun, killedRestores, killedWords, lockRestores } from './killed-restore.ts'
import { leaveOthers, ownReplaced } from './others-files.ts'
import { trieOf } from './path-trie.ts'
import { type RestoreRoot, restoreRoots } from './restore-roots.ts'
import { RestoreTrees, type Side } from './restore-trees.ts'
import type { BundleRestoreResult } from './results.ts'
import { splitShared } from './shared-files.ts'
import { refuseProblems } from './sound-states.ts'
import { undoName, writeUndoBundle } from './undo-bundle.ts'

export interface BundleRestoreOptions
  extends Pick<OpenOptions, 'home' | 'env' | 'cwd' | 'onNotice' | 'signal' | 'onUnstoppable'> {
  side: Side
  /** A directory to restore into, under the absolute paths; otherwise in place. */
  to?: string | undefined
  /** In place: also outside of where the command started. */
  anywhere: boolean
  /** In place: also what was edited since. */
  force: boolean
  withGit: boolean
  dryRun: boolean
  /** In place, with what would be done. */
  confirm(plan: BundleRestoreResult): Promise<boolean>
}

export async function restoreBundle(bundle: Bundle, options: BundleRestoreOptions): Promise<BundleRestoreResult> {
  refuseProblems(bundle.files)
  const env = options.env ?? process.env
  const home = homeOf(options, env)
  makeHome(home, true)
  makeDirs(join(home, 'tmp'), 0o700)
  const scratch = makeScratch(join(home, 'tmp'))
  const store = Store.open(scratch)
  const writer = await store.writer()
  const contents = new BundleContents({ bundle, home, store, writer, withGit: options.withGit, env })
  try {
    const restore = new BundleRestore(bundle, options, home, store, writer, contents)
    if (options.to !== undefined) return await restore.into(resolve(options.cwd ?? '.', options.to))
    // Two at once would take each other's work for edits, and write the same second bundle.
    using _ = options.dryRun ? undefined : await lockRestores(home, options.signal)
    return await restore.inPlace()
  } finally {
    contents.close()
    writer.close()
    store.close()
    rmSync(scratch, { recursive: true, force: true })
  }
}

class BundleRestore {
  private readonly bundle: Bundle
  private readonly options: BundleRestoreOptions
  private readonly home: string
  private readonly store: Store
  private readonly writer: StoreWriter
  private readonly contents: BundleContents
  private readonly result: BundleRestoreResult

  constructor(
    bundle: Bundle,
    options: BundleRestoreOptions,
    home: string,
    store: Store,
    writer: StoreWriter,
    contents: BundleContents,
  ) {
    this.bundle = bundle
    this.options = options
    this.home = home
    this.store = store
    this.writer = writer
    this.contents = contents
    const { side, dryRun } = options
    if (!bundle.manifest.complete)
      options.onNotice?.(
        'the recording is INCOMPLETE: what it has not seen stays as it is. `savepoint bundle show` tells why',
      )
    this.result = { side, dryRun, changes: [], leftAlone: [], keptDirs: [], outside: 0, to: undefined, undo: undefined }
  }

  async inPlace(): Promise<BundleRestoreResult> {
    const { bundle, options, result } = this
    const start = isDirectory(bundle.startCwd) ? bundle.startCwd : undefined
    if (start === undefined && !options.anywhere)
      throw new SavepointError(
        'target.missing',
        `Cannot restore in place: ${showPath(bundle.startCwd)} ${isThere(bundle.startCwd) ? 'is no directory any more, or reached by a link' : 'does not exist'}`,
        { hint: 'Make it, or restore into another directory with --to DIR' },
      )
    for (const notice of killedWords(this.home, bundle.directory, !options.dryRun)) options.onNotice?.(notice)
    const files = this.withoutOurs(bundle.files.filter(isChanged))
    const { roots, outside, busy } = restoreRoots(files, start, options.anywhere, options.side)
    result.outside = outside
    result.leftAlone.push(...busy.map(({ raw }) => ({ path: raw, why: 'mounted' as const })))
    if (options.side === 'before') result.leftAlone.push(...unseenOf(bundle, options.anywhere))
    const prepared: RootPlan[] = []
    for (const root of roots) {
      if (options.signal?.aborted) throw cancelled()
      const each = await this.prepare(root, true)
      if (root.isUsable) prepared.push(each)
    }
    if (options.dryRun) return result
    const hasWork = result.changes.length > 0
    if (hasWork && !(await options.confirm(result))) return { ...result, cancelled: true }
    if (options.signal?.aborted) throw cancelled()
    const about = { bundle: bundle.directory, anywhere: options.anywhere }
    const now = { ...about, directories: new Set(prepared.map(({ directory }) => directory)) }
    await clearUnbegun(this.home, now)
    if (hasWork) {
      result.undo = this.keepReplaced(prepared)
      const left = await applyRoots(prepared, this.home, { ...about, undo: result.undo }, options)
      result.leftAlone.push(...left)
      const edited = new Set(left.filter(({ why }) => why === 'edited').map(({ path }) => path))
      result.changes = result.changes.filter(({ path }) => !edited.has(path))
    }
    result.leftAlone.push(...(await clearKilled(this.home, now)))
    return result
  }

  /** Everything that the bundle has a state of, under the absolute paths. */
  async into(directory: string): Promise<BundleRestoreResult> {
    const { bundle, options, result } = this
    result.to = directory
    if (isOurs(this.home, rawFromText(directory)))
      throw new SavepointError('usage', `Cannot restore to ${directory}: it belongs to Savepoint itself`, {
        hint: 'Name a directory elsewhere',
      })
    checkEmpty(directory)
    if (!options.dryRun) makeDirs(directory, 0o700)
    const files = bundle.files.filter(file => file[options.side].exists && file.raw !== '/')
    const at = options.dryRun ? mkdtempSync(join(this.store.directory, 'none-')) : realpathSync(directory)
    const prepared = await this.prepare({ directory: '/', isUsable: true, files }, false, rawFromText(at))
    if (!options.dryRun) await this.apply({ ...prepared, directory: rawFromText(at) })
    // Each path, although a directory came as a whole.
    const left = new Set(result.leftAlone.flatMap(({ path, why }) => (why === 'attributes' ? [] : [path])))
    result.changes = files.filter(({ raw }) => !left.has(raw)).map(({ raw }) => ({ action: 'create', path: raw }))
    return result
  }

  /** No recording has what lies in our home, so this is a bundle of somebody else: the snapshots that are there are not its to change. */
  private withoutOurs(files: BundleFile[]): BundleFile[] {
    const home = rawFromText(realpathSync(this.home))
    const { ours = [], others = [] } = Object.groupBy(files, ({ raw }) => (isWithin(raw, home) ? 'ours' : 'others'))
    this.result.leftAlone.push(...ours.map(({ raw }) => ({ path: raw, why: 'ours' as const })))
    return others
  }

  private async prepare(
    { directory, isUsable, files }: RestoreRoot,
    withBase: boolean,
    at = directory,
  ): Promise<RootPlan> {
    return withDir(rawToBytes(at), async root => {
      const trees = new RestoreTrees(root, this.writer, this.contents, this.options.side)
      const trie = trieOf(directory, files)
      const live = trees.live(trie)
      const wanted = await trees.wanted(trie)
      const base = withBase && !this.options.force ? await trees.base(trie, this.resumes(at)) : undefined
      this.writer.commit()
      const plan = planRestore({ store: this.store, live, wanted, ...(base === undefined ? {} : { base }) })
      const below = (path: Raw): Raw => `${directory === '/' ? '' : directory}/${path}`
      plan.actions = splitShared(plan.actions, root, trees.linked, this.filesBelow(directory), this.options.side)
      const others = this.options.force ? [] : leaveOthers(plan)
      this.result.leftAlone.push(...others.map(path => ({ path: below(path), why: 'refused' as const })))
      const owned = new Set(ownReplaced(plan))
      // Elsewhere than in its place, everything is the user's.
      if (withBase) for (const path of trees.otherOwned) if (!isLeft(plan, path)) owned.add(path)
      for (const path of others) owned.delete(path)
      this.result.leftAlone.push(...[...owned].map(path => ({ path: below(path), why: 'attributes' as const })))
      if (isUsable) this.result.changes.push(...plan.actions.map(({ action, path }) => ({ action, path: below(path) })))
      else
        this.result.leftAlone.push(...plan.actions.map(({ path }) => ({ path: below(path), why: 'refused' as const })))
      this.result.leftAlone.push(...trees.notRestored.map(({ path, why }) => ({ path: below(path), why })))
      this.result.leftAlone.push(...plan.leftAlone.map(({ path, why }) => ({ path: below(path), why })))
      this.result.keptDirs.push(...plan.keptDirs.map(below))
      return { directory: at, plan, store: this.store, live, wanted, shaOf: trees.shaOf }
    })
  }

  /** All that the bundle tells of, by their paths below a directory. */
  private filesBelow(directory: Raw): Map<Raw, BundleFile> {
    const start = directory === '/' ? directory : `${directory}/`
    const below = this.bundle.files.filter(({ raw }) => raw.startsWith(start))
    return new Map(below.map(file => [file.raw.slice(start.length), file]))
  }

  /** Whether this restore was begun before, and killed. */
  private resumes(directory: Raw): boolean {
    return killedRestores(this.home, !this.options.dryRun).some(
      killed => killed.bundle === this.bundle.directory && killed.directory === directory && killed.phase !== 'kept',
    )
  }

  private keepReplaced(prepared: readonly RootPlan[]): string {
    const { bundle, options } = this
    const output = undoName(bundle.directory)
    try {
      writeUndoBundle(
        output,
        ['savepoint', 'bundle', 'restore', `--${options.side}`, '--in-place', bundle.directory],
        bundle.startCwd,
        prepared,
      )
      return output
    } catch (cause) {
      if (cause instanceof Unstable)
        throw new SavepointError('io.failed', `Cannot keep what would be replaced: ${cause.message}`, {
          hint: 'Nothing was changed. Try again when nobody else is at work there',
          cause,
        })
      if (errnoWords(cause) === undefined) throw cause
      throw new SavepointError('io.failed', `Cannot keep what would be replaced in ${output}: ${errnoWords(cause)}`, {
        hint: 'Nothing was changed. Copy the bundle to a place where you may write, and restore from there; or use --to DIR',
        cause,
      })
    }
  }

  private async apply({ directory, plan, live, wanted }: RootPlan): Promise<void> {
    await withDir(rawToBytes(directory), async root => {
      const { left } = await applyPlan({
        store: this.store,
        root,
        plan,
        live,
        wanted,
        stage: `${STAGE_PREFIX}${randomHex(8)}`,
        onProgress: () => {},
        rescue: async displaced => displaced.filter(item => isEdited(root, this.store, item)),
      })
      addon.syncfs(root)
      const below = (path: Raw): Raw => `${directory === '/' ? '' : directory}/${path}`
      this.result.leftAlone.push(...left.map(({ path, why }) => ({ path: below(path), why })))
    })
  }
}

const isLeft = ({ leftAlone }: RestorePlan, path: Raw): boolean => leftAlone.some(left => isWithin(path, left.path))

/** What the command touched and nobody could look at in the end: whether it is as it was before, nobody knows. */
function unseenOf({ manifest, files, startCwd }: Bundle, anywhere: boolean): BundleRestoreResult['leftAlone'] {
  const unseen = new Set(manifest.skipped.filter(({ reason }) => reason === 'unseen').map(({ path }) => path))
  return files
    .filter(
      ({ path, operations }) => unseen.has(path) && operations.some(each => each === 'write' || each === 'delete'),
    )
    .filter(({ raw }) => anywhere || isWithin(raw, startCwd === '/' ? '' : startCwd))
    .map(({ raw }) => ({ path: raw, why: 'unseen' }))
}

const isDirectory = (path: Raw): boolean =>
  statSync(rawToBytes(path), { throwIfNoEntry: false })?.isDirectory() === true &&
  realpathSync.native(rawToBytes(path), 'buffer').toString('latin1') === path

const isThere = (path: Raw): boolean => lstatSync(rawToBytes(path), { throwIfNoEntry: false }) !== undefined

function checkEmpty(directory: string): void {
  const stat = statSync(directory, { throwIfNoEntry: false })
  if (!stat) return
  if (stat.isDirectory() && readdirSync(directory).length === 0) return
  throw new SavepointError(
    'usage',
    `Cannot restore to ${directory}: it is ${stat.isDirectory() ? 'not empty' : 'no directory'}`,
    {
      hint: 'Name a directory that does not exist yet',
    },
  )
}
