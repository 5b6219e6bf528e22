/** Mode, owner and xattrs of the target directory itself: whether a restore changes them, and how they are put back. */
import { errnoOf } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { addon } from '../native/addon.ts'
import { sameMetadata } from '../store/tree-diff.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import type { LeftAlone } from '../targets/dir/hidden.ts'
import { chmodRoot } from '../targets/dir/root-mode.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import type { RestoreRequest } from './restore.ts'

const OWNER_ALL = 0o700

/** As a plan decides for every other directory: undo only what the operation changed and nobody else has since. */
export function shallChangeRoot(ctx: Context, request: RestoreRequest, live: Pick<Live, 'root'>): boolean {
  if (request.scope) return false
  if (request.remade) return true
  const { now, wanted, base } = rootStates(ctx, request, live)
  return !sameMetadata(now, wanted) && (!base || (sameMetadata(now, base) && !isRootOthers(ctx, request)))
}

/** Whether the operation that is undone changed it, and somebody else did since, or meanwhile: then why it stays. */
export function whyRootStays(
  ctx: Context,
  request: RestoreRequest,
  live: Pick<Live, 'root'>,
): LeftAlone['why'] | undefined {
  if (request.scope || request.remade) return undefined
  const { now, wanted, base } = rootStates(ctx, request, live)
  if (base === undefined || sameMetadata(now, wanted) || sameMetadata(base, wanted)) return undefined
  if (isRootOthers(ctx, request)) return 'overlapped'
  return sameMetadata(now, base) ? undefined : 'edited'
}

const isRootOthers = (ctx: Context, { others = [] }: RestoreRequest): boolean =>
  others.some(({ before, after }) => !sameMetadata(rootEntryOf(ctx.store, before), rootEntryOf(ctx.store, after)))

const rootStates = (ctx: Context, { wanted, base }: RestoreRequest, live: Pick<Live, 'root'>) => ({
  now: rootEntryOf(ctx.store, live.root),
  wanted: rootEntryOf(ctx.store, wanted),
  base: base === undefined ? undefined : rootEntryOf(ctx.store, base),
})

/** As far as permitted. */
export function restoreRootMetadata(root: number, wanted: Entry): void {
  const stat = addon.statFd(root)
  const mode = stat.mode & 0o7777
  const isClosed = (mode & OWNER_ALL) !== OWNER_ALL
  whereAllowed(() => {
    if (isClosed) chmodRoot(root, mode | OWNER_ALL)
    if (stat.uid !== wanted.uid || stat.gid !== wanted.gid) addon.chownAt(root, '', wanted.uid, wanted.gid)
  })
  addon.setXattrs(root, '', wanted.xattrs ?? Buffer.alloc(0))
  // Last: the mode that is wanted may close the directory to us.
  whereAllowed(() => {
    if (isClosed || mode !== wanted.mode) chmodRoot(root, wanted.mode)
  })
}

function whereAllowed(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
  }
}
