/** What a snapshot that its filesystem keeps, or an archive, remembers of that: the text in `native_ref`. */
import type { Keeper, NativeBackend, NativeState } from '../backends/native-backend.ts'
import { keeperOf, nativeBackend } from '../backends/select.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { OutsideRules } from '../files/outside-rules.ts'
import type { Raw } from '../model/raw-path.ts'
import type { NativeUsage, Snapshot } from '../model/snapshot.ts'
import type { KeptState } from './capture-live.ts'
import type { Context } from './context.ts'

export interface NativeRef extends NativeState {
  /** When it was the live state. */
  atMs: number
  /** What was mounted in the target, which the filesystem does not keep with it. */
  mounts: Raw[]
  /** The newest event that was known then. */
  eventsAt: number
  /** What was to be captured, by the settings of then; not in older ones. */
  rules?: Pick<Context['config']['snapshots'], 'exclude' | 'max_file_bytes'>
  /** What else counted then, and lies elsewhere. */
  outside?: OutsideRules
}

/** What was protected then is read, whatever is to be left out by now. */
export const asThen = (ctx: Context, { rules }: NativeRef): Context => ({
  ...ctx,
  config: { ...ctx.config, snapshots: { ...ctx.config.snapshots, ...rules } },
})

/** `path`: where it can be read. */
export const keptState = (ref: NativeRef, path: Buffer, dirtySince: KeptState['dirtySince']): KeptState => ({
  path,
  atMs: ref.atMs,
  mounts: new Set(ref.mounts),
  outside: ref.outside,
  dirtySince,
})

export interface Kept {
  backend: NativeBackend
  ref: NativeRef
}

/** Where it is kept; undefined: only in the store. */
export const stateOf = ({ nativeRef }: Pick<Snapshot, 'nativeRef'>): NativeState | undefined =>
  nativeRef === undefined ? undefined : JSON.parse(nativeRef)

/** undefined: no filesystem keeps it. */
export function keptOf(snapshot: Pick<Snapshot, 'backend' | 'nativeRef'>): Kept | undefined {
  const backend = snapshot.nativeRef === undefined ? undefined : nativeBackend(snapshot.backend)
  return backend && { backend, ref: JSON.parse(snapshot.nativeRef!) as NativeRef }
}

/** Where it is and what it takes; undefined when only the store keeps it. `directory`: of the timeline. */
export function nativeUsage(directory: string, snapshot: Snapshot): NativeUsage | undefined {
  const state = stateOf(snapshot)
  const keeper = state && keeperOf(snapshot.backend, directory)
  if (!keeper) return undefined
  const found = whereNow(keeper, state)
  return { where: keeper.whereOf(found ?? state), bytes: found && keeper.usageBytes(found), isGone: !found }
}

/** Where that cannot be told, because its filesystem is not mounted, it counts as kept where it was. */
function whereNow(keeper: Keeper, state: NativeState): NativeState | undefined {
  try {
    return keeper.find(state)
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    return state
  }
}
