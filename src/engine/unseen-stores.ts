/** At the end of a run, where a store to memory may leave no sign (tmpfs, FUSE): all that the run touched is read. */
import { withDir } from '../targets/dir/dir-target.ts'
import type { HeldFiles } from '../targets/dir/dirty-dirs.ts'
import { isStoreUnseen } from '../targets/dir/mapped-files.ts'
import type { Context } from './context.ts'

export const unseenStores = (ctx: Context, run: string): Promise<HeldFiles | undefined> =>
  withDir(ctx.targetPath, async root => {
    if (!isStoreUnseen(root)) return undefined
    return { mapped: [...ctx.db.events.touchedBy(run).paths], inodes: new Set(), mappedInodes: new Set() }
  })
