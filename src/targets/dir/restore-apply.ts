/**
 * Carries out a plan so that nothing is lost whatever happens:
 *
 * 1. stage: everything new is written into a directory of ours in the target; a failure here changes nothing;
 * 2. place: renames only. What is displaced moves into the stage. A failure here is reversed;
 * 3. rescue: what was displaced is compared with the safety snapshot; an edit that came in between is stored;
 * 4. clean: the stage is removed.
 *
 * After kill -9 the stage is still there, and the journal (the caller's) leads to completion.
 */
import { errnoOf } from '../../errors/errors.ts'
import type { Entry, Id } from '../../model/entry.ts'
import { joinRaw, parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { failpoint, pausepoint } from '../../store/failpoint.ts'
import { applyMetadata } from './content-writer.ts'
import { isOfKind } from './dir-node.ts'
import type { LeftAlone } from './hidden.ts'
import { existsAt } from './look-at.ts'
import { removeTree } from './remove-tree.ts'
import { RENAME, renameNew, renameWith } from './rename-new.ts'
import { explainFailure } from './restore-failed.ts'
import { planLinks } from './restore-links.ts'
import type { PlanAction } from './restore-plan.ts'
import { preflight } from './restore-preflight.ts'
import { type StageOptions, stageActions, stagedPath, type WrittenFiles } from './restore-stage.ts'
import { OWNER_ALL, SafeDirs } from './safe-dirs.ts'
import { KEPT_SUFFIX, makeStage, markStage } from './stage-mark.ts'

export interface ApplyOptions extends Omit<StageOptions, 'needs' | 'links' | 'written' | 'left'> {
  /** Trees of the target directory. */
  live: Id
  wanted: Id
  /** Stores what was displaced but is not as the safety snapshot has it. Returns what could not be stored: it is put back. */
  rescue: (displaced: readonly Displaced[]) => Promise<readonly Displaced[]>
  /** Whether something is not as it was: it gets no other attributes then. Without it, whether it is something else by now. */
  isChanged?: (path: Raw, live: Entry) => boolean
}

export interface Displaced {
  path: Raw
  /** Where it lies now. */
  staged: Raw
  /** What the safety snapshot has there. */
  live: Entry | undefined
}

export interface ApplyResult {
  written: WrittenFiles
  /** What is not as it shall be. `edited`: meanwhile, in a way that could not be stored; it is as that edit left it. */
  left: LeftAlone[]
  /** A directory of ours with what could neither be removed nor put back. */
  keptIn: Raw | undefined
}

export async function applyPlan(options: ApplyOptions): Promise<ApplyResult> {
  const restore = new StepwiseRestore(options)
  await restore.stage()
  await restore.place()
  return restore.finish()
}

/** Step by step, for who restores into several directories at once. What a step throws is a `RestoreFailed`; `stage` and `place` have reversed all then. */
export class StepwiseRestore {
  private readonly options: ApplyOptions
  private readonly root: number
  private readonly safe: SafeDirs
  private readonly written: WrittenFiles = new Map()
  private readonly left: LeftAlone[] = []
  private readonly displaced: Displaced[] = []
  private readonly links: Map<Raw, Raw>
  /** How to reverse what was placed so far, newest last. */
  private readonly reversals: (() => void)[] = []
  private readonly replacedAt = new Map<Raw, Entry>()
  private trash = 0

  constructor(options: ApplyOptions) {
    for (const action of options.plan.actions)
      if (action.action === 'replace') this.replacedAt.set(action.path, action.live)
    this.options = options
    this.root = options.root
    this.safe = new SafeDirs(options.root)
    this.links = planLinks(options.store, options.plan.actions, options.live, options.wanted)
  }

  /** Changes nothing. */
  async stage(): Promise<void> {
    const { store, plan, stage, whatHolds } = this.options
    if (plan.actions.length === 0) return
    try {
      const needs = preflight(store, this.root, plan.actions, { whatHolds })
      makeStage(this.root, stage, this.safe)
      failpoint('restore:stage')
      await stageActions({ ...this.options, needs, links: this.links, written: this.written, left: this.left })
      failpoint('restore:staged')
    } catch (error) {
      throw explainFailure(error, await this.reverse(), this.root)
    }
  }

  async place(): Promise<void> {
    try {
      await pausepoint('restore:placing')
      this.placeAll()
    } catch (error) {
      throw explainFailure(error, await this.reverse(), this.root)
    }
  }

  async finish(): Promise<ApplyResult> {
    if (this.options.plan.actions.length === 0) return this.result(undefined)
    try {
      return this.result(await this.cleanUp())
    } catch (error) {
      throw explainFailure(error, false, this.root)
    }
  }

  private result(keptIn: Raw | undefined): ApplyResult {
    return { written: this.written, left: this.left, keptIn }
  }

  /** Everything is in place. From here on a failure leaves the stage to the recovery: what was displaced lies in it. */
  private async cleanUp(): Promise<Raw | undefined> {
    const { stage } = this.options
    failpoint('restore:placed')
    // What was displaced is read through the target, which has by now got its mode: one that may shut it.
    this.safe.in([''], () => addon.statAt(this.root, stage))
    const unsaved = await this.options.rescue(this.displaced)
    failpoint('restore:rescued')
    const isBack = unsaved.map(item => this.putBack(item, 'edited')).every(Boolean)
    // What could not be stored is never deleted.
    if (!isBack) return this.setAside()
    const stuck = await removeTree(this.root, stage, this.safe)
    if (stuck.length > 0) {
      for (const item of this.displaced) if (existsAt(this.root, item.staged)) this.putBack(item, 'refused')
      await removeTree(this.root, stage, this.safe)
    }
    const keptIn = existsAt(this.root, stage) ? this.setAside() : undefined
    this.safe.close()
    failpoint('restore:cleaned')
    return keptIn
  }

  /** Back to its place; what we put there goes. Returns whether that was possible. */
  private putBack({ path, staged }: Displaced, why: LeftAlone['why']): boolean {
    this.left.push({ path, why })
    try {
      this.rename(staged, path, existsAt(this.root, path) ? RENAME.exchange : RENAME.noReplace)
      return true
    } catch {
      return false
    }
  }

  /** The stage stays, under a name that no recovery removes. */
  private setAside(): Raw {
    const kept = `${this.options.stage}${KEPT_SUFFIX}`
    markStage(this.root, this.options.stage)
    this.safe.in([''], () => renameNew(this.root, this.options.stage, kept))
    this.safe.close()
    return kept
  }

  private setMetadata(path: Raw, entry: Entry): void {
    if (applyMetadata(this.root, path, entry)) this.left.push({ path, why: 'attributes' })
  }

  // --- place ---

  private placeAll(): void {
    const actions = [...this.options.plan.actions.entries()]
    for (const [, action] of actions) if (action.action === 'delete') this.displace(action.path, action.live)
    for (const [index, action] of actions) {
      if (action.action === 'create' || action.action === 'replace') this.putInPlace(index, action)
    }
    for (const [path, source] of this.links) this.link(path, source)
    // From below: a directory that is shut, or becomes read-only, does so after everything inside it is done.
    for (const [, action] of actions.reverse()) {
      if (action.action === 'metadata') this.changeMetadata(action.path, action.live, action.entry)
      else if (action.action !== 'delete' && action.entry.kind === 'dir') this.finishDir(action.path, action.entry)
    }
    this.safe.close()
  }

  /** A directory that was placed may have been opened on its way. */
  private finishDir(path: Raw, entry: Entry): void {
    // What was placed is taken out again through it.
    this.reversals.push(() => this.safe.in([parentOf(path)], () => addon.chmodAt(this.root, path, OWNER_ALL)))
    this.safe.in([parentOf(path)], () => this.setMetadata(path, entry))
    this.safe.forget(path)
  }

  private putInPlace(index: number, action: PlanAction & { entry: Entry }): void {
    const { path, entry } = action
    if (this.links.has(path)) return
    const staged = stagedPath(this.options.stage, index)
    const live = action.action === 'replace' ? action.live : undefined
    if (!existsAt(this.root, staged)) return
    failpoint('restore:place')
    if (live && (live.kind === 'dir' || entry.kind === 'dir')) {
      this.displace(path, live)
      this.moveIn(staged, path)
    } else if (live) this.exchange(staged, path, live)
    else this.moveIn(staged, path)
  }

  /** Puts something where nothing should be. Something that has appeared there meanwhile is displaced. */
  private moveIn(staged: Raw, path: Raw): void {
    try {
      this.rename(staged, path, RENAME.noReplace)
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
      this.exchange(staged, path, undefined)
    }
  }

  private exchange(staged: Raw, path: Raw, live: Entry | undefined): void {
    try {
      this.rename(staged, path, RENAME.exchange)
      this.displaced.push({ path, staged, live })
    } catch (error) {
      const code = errnoOf(error)
      // ENOENT: what should be replaced is gone. EINVAL: this filesystem cannot exchange.
      if (code !== 'ENOENT' && code !== 'EINVAL' && code !== 'ENOSYS') throw error
      if (code !== 'ENOENT') this.displace(path, live)
      this.rename(staged, path, RENAME.noReplace)
    }
  }

  /** Moves what is there into the stage. Nothing there any more is fine. */
  private displace(path: Raw, live: Entry | undefined): void {
    failpoint('restore:displace')
    const staged = joinRaw(this.options.stage, `old-${this.trash++}`)
    try {
      this.rename(path, staged, RENAME.noReplace)
      this.displaced.push({ path, staged, live })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
    }
    failpoint('restore:displaced')
  }

  private rename(from: Raw, to: Raw, flags: number): void {
    // A directory that changes its parent must itself be writable, hence both ends are opened.
    const move = (a: Raw, b: Raw) => {
      this.safe.in([parentOf(a), parentOf(b), a, b], () => renameWith(this.root, a, b, flags))
      this.safe.moved(a, b)
    }
    move(from, to)
    this.reversals.push(() => move(to, from))
  }

  /** Makes a hard link in place of whatever is there. */
  private link(path: Raw, source: Raw): void {
    const staged = joinRaw(this.options.stage, `link-${this.trash++}`)
    this.safe.in([parentOf(source)], () => addon.linkAt(this.root, source, staged))
    const live = this.replacedAt.get(path)
    if (live?.kind === 'dir') {
      this.displace(path, live)
      this.moveIn(staged, path)
    } else if (live) this.exchange(staged, path, live)
    else this.moveIn(staged, path)
  }

  private changeMetadata(path: Raw, live: Entry, entry: Entry): void {
    const { isChanged = () => !isOfKind(addon.statAt(this.root, path).mode, live.kind) } = this.options
    try {
      if (this.safe.in([parentOf(path)], () => isChanged(path, live)))
        return void this.left.push({ path, why: 'edited' })
      this.reversals.push(() => this.safe.in([parentOf(path)], () => applyMetadata(this.root, path, live)))
      this.safe.in([parentOf(path)], () => this.setMetadata(path, entry))
      this.safe.forget(path)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'EPERM') throw error
      this.left.push({ path, why: 'refused' })
    }
  }

  /** Instead of `finish`, once: takes back what was placed. Returns whether the target is as it was; if not, the stage stays for the recovery. */
  async reverse(): Promise<boolean> {
    let clean = true
    for (const step of this.reversals.reverse()) {
      try {
        failpoint('restore:reverse')
        step()
      } catch {
        clean = false
      }
    }
    try {
      if (clean && existsAt(this.root, this.options.stage))
        clean = (await removeTree(this.root, this.options.stage, this.safe)).length === 0
    } catch {
      clean = false
    }
    this.safe.close()
    return clean
  }
}
