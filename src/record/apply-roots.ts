/**
 * Restores a bundle into all its directories at once: everything is staged everywhere before the first thing is switched, and where that
 * fails, all of it is taken back. What was replaced goes when everything is in place.
 */
import { rmSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenOptions } from '../engine/savepoint.ts'
import { cancelled, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { randomHex } from '../model/id.ts'
import { joinRaw, type Raw, rawToBytes, showPath } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { StepwiseRestore } from '../targets/dir/restore-apply.ts'
import { explainFailure, RestoreFailed } from '../targets/dir/restore-failed.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import { isAnother, isEdited } from './edited-since.ts'
import { type Note, noteRestore, type RestoreUnderWay, undoCommand } from './killed-restore.ts'
import type { BundleRestoreResult } from './results.ts'
import type { Planned } from './undo-bundle.ts'

export interface RootPlan extends Planned {
  live: Id
  wanted: Id
}

type About = Pick<RestoreUnderWay, 'bundle' | 'undo' | 'anywhere'>
type Stop = Pick<OpenOptions, 'signal' | 'onUnstoppable'>
type LeftAlone = BundleRestoreResult['leftAlone']

interface Root {
  directory: Raw
  fd: number
  restore: StepwiseRestore
  /** When it was begun. */
  note?: Note
}

/** Returns what could not be restored. Throws, with nothing changed, or with what is and how to take it back. */
export async function applyRoots(
  plans: readonly RootPlan[],
  home: string,
  about: About,
  stop: Stop,
): Promise<LeftAlone> {
  const stage = `${STAGE_PREFIX}${randomHex(8)}`
  // From below: one above may set the mode of a directory that another one is staged in, and has the last word.
  const sorted = plans
    .filter(({ plan }) => plan.actions.length > 0)
    .sort((a, b) => b.directory.length - a.directory.length)
  let isBegun = false
  const work = async (fds: number[]) => {
    isBegun = true
    const roots = sorted.map((plan, i) => rootOf(plan, fds[i]!, stage))
    await switchAll(roots, about, stop, root => {
      root.note = noteRestore(home, { ...about, directory: root.directory, stage, pid: process.pid })
    })
    return finishAll(roots, about, stage)
  }
  return withDirs(sorted, work).catch(cause => {
    if (isBegun) throw cause
    // One of them is gone since it was looked at.
    rmSync(about.undo, { recursive: true, force: true })
    throw new SavepointError('target.missing', (cause as Error).message, {
      hint: 'Nothing was changed. Try again: what is there now is looked at anew',
      cause,
    })
  })
}

function withDirs<T>(plans: readonly RootPlan[], work: (fds: number[]) => Promise<T>, fds: number[] = []): Promise<T> {
  const next = plans[fds.length]
  return next ? withDir(rawToBytes(next.directory), fd => withDirs(plans, work, [...fds, fd])) : work(fds)
}

const rootOf = ({ directory, store, plan, live, wanted }: RootPlan, fd: number, stage: Raw): Root => ({
  directory,
  fd,
  restore: new StepwiseRestore({
    store,
    root: fd,
    plan,
    live,
    wanted,
    stage,
    onProgress: () => {},
    rescue: async displaced => displaced.filter(item => isEdited(fd, store, item)),
    isChanged: (path, live) => isAnother(fd, path, live),
  }),
})

async function switchAll(roots: readonly Root[], about: About, stop: Stop, begin: (root: Root) => void): Promise<void> {
  let at: Root | undefined
  let isSwitching = false
  try {
    for (at of roots) {
      begin(at)
      await at.restore.stage()
      await refuseStopped(stop)
    }
    stop.onUnstoppable?.(true)
    for (at of roots) at.note!.switches()
    isSwitching = true
    for (at of roots) await at.restore.place()
  } catch (error) {
    const changed: Raw[] = []
    for (const root of [...roots].reverse()) {
      if (!root.note) continue
      const isBack = root === at && error instanceof RestoreFailed ? error.reversed : await root.restore.reverse()
      if (isBack) root.note.ends()
      else changed.push(root.directory)
    }
    if (isStopped(error) && changed.length === 0) {
      rmSync(about.undo, { recursive: true, force: true })
      throw error
    }
    const failed = error instanceof RestoreFailed ? error : explainFailure(error, true)
    const where = roots.length > 1 ? ` (in ${showPath(at!.directory)})` : ''
    throw new SavepointError(failed.code, `${failed.message}${where}`, {
      hint: hintFor(failed, about, changed, isSwitching),
      cause: error,
    })
  }
}

/** Until the first rename. Signals are taken in between turns only, and the present one may have looked for them already. */
async function refuseStopped({ signal }: Stop): Promise<void> {
  await nextTurn()
  await nextTurn()
  if (signal?.aborted) throw cancelled()
}

const isStopped = (error: unknown): boolean => error instanceof SavepointError && error.code === 'cancelled'

/** `changed`: where it could not be taken back. */
function hintFor(failed: RestoreFailed, about: About, changed: readonly Raw[], isSwitching: boolean): string {
  const places = changed.map(showPath).join(', ')
  if (changed.length > 0 && isSwitching)
    return `In ${places} part of it was carried out, elsewhere nothing was changed. Mend the cause: the same command finishes it; \`${undoCommand(about)}\` takes it back`
  // It has nothing to take back.
  rmSync(about.undo, { recursive: true, force: true })
  if (changed.length > 0)
    return `Nothing was changed. In ${places} a directory ${STAGE_PREFIX}… could not be removed: the same command does that`
  const own = failed.cause instanceof SavepointError ? failed.cause.hint : undefined
  return own ?? 'Nothing was changed. Mend the cause and try again'
}

async function finishAll(roots: readonly Root[], about: About, stage: Raw): Promise<LeftAlone> {
  const left: LeftAlone = []
  const unfinished: Raw[] = []
  let failure: RestoreFailed | undefined
  for (const { directory, fd, restore, note } of roots) {
    const below = (path: Raw): Raw => joinRaw(directory === '/' ? '' : directory, path)
    try {
      const { left: own, keptIn } = await restore.finish()
      addon.syncfs(fd)
      note!.ends()
      left.push(...own.map(({ path, why }) => ({ path: below(path), why })))
      if (keptIn !== undefined) left.push({ path: below(keptIn), why: 'set-aside' })
    } catch (error) {
      failure ??= explainFailure(error, false)
      unfinished.push(below(stage))
    }
  }
  if (!failure) return left
  throw new SavepointError(failure.code, failure.message, {
    hint: `Everything is in place, but what was replaced lies in ${unfinished.map(showPath).join(', ')} still: the same command removes it. \`${undoCommand(about)}\` takes all of it back`,
    cause: failure,
  })
}
