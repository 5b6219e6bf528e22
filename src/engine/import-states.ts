/**
 * States that are known only in part (a bundle knows what its command touched) as snapshots: each is the live state with the paths changed
 * that it knows. They hang on each other and on nothing else; HEAD and the live files stay as they are.
 */
import type { Entry, Id } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { rewriteTree } from '../store/tree-rewrite.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { captureLive } from './capture-live.ts'
import { type Context, withTimelineLock } from './context.ts'
import { newOperation } from './new-operation.ts'
import { recoverPending } from './recover.ts'
import { checkManualPool } from './snapshot.ts'
import { addWholeState, sizeOf } from './whole-state.ts'

export interface PartialState {
  label: string
  /** Relative to the target; undefined: it is not there. A directory has the tree of the live one, if that is one. */
  edits: Map<Raw, Entry | undefined>
}

/** Stores what the states need, and tells them, oldest first. `live`: the tree of the target directory. */
export type MakeStates = (into: {
  store: Store
  writer: StoreWriter
  home: string
  target: Buffer
  live: Id
}) => Promise<PartialState[]>

/** `source`: what they come from, for people. */
export async function importStates(ctx: Context, source: string, make: MakeStates): Promise<Snapshot[]> {
  return withTimelineLock(ctx, 'import states', async () => {
    await recoverPending(ctx)
    checkManualPool(ctx)
    // What they say nothing of, they have from it: also of files that their own user may not read.
    const live = await captureLive(ctx, { readOwned: true })
    const writer = await ctx.store.writer(ctx.signal)
    try {
      const { store, home, targetPath: target } = ctx
      const states = await make({ store, writer, home, target, live: live.tree })
      writer.commit()
      const root = rootEntryOf(store, live.root)
      const made = states.map(({ label, edits }) => {
        const content = rewriteTree(store, writer, live.tree, edits)
        return { label, tree: content, root: writer.put(encodeTree([{ ...root, content }])) }
      })
      writer.commit()
      return addRows(ctx, source, made, writer.newBytes)
    } finally {
      writer.close()
    }
  })
}

function addRows(
  ctx: Context,
  source: string,
  states: readonly { label: string; tree: Id; root: Id }[],
  newBytes: number,
): Snapshot[] {
  return ctx.db.transaction(() => {
    const added: Snapshot[] = []
    for (const { label, tree, root } of states) {
      const parent = added.at(-1)
      const state = {
        ...sizeOf(allEntries(ctx.store, tree)),
        root,
        type: 'import',
        label,
        createdAt: ctx.now(),
        parent: parent?.id,
        sizeDelta: parent ? 0 : newBytes,
      } as const
      const snapshot = addWholeState(ctx.store, ctx.db, state, parent?.root)
      added.push(snapshot)
      ctx.db.addOperation({
        ...newOperation(ctx, 'import', `imported ${source} as ${snapshot.id}`),
        detail: { file: source, snapshot: snapshot.id },
      })
    }
    return added
  })
}
