/** What a snapshot that its filesystem keeps remembers of that: the text in `native_ref`. */
import type { NativeBackend, NativeState } from '../backends/native-backend.ts'
import { nativeBackend } from '../backends/select.ts'
import type { Raw } from '../model/raw-path.ts'
import type { NativeUsage, Snapshot } from '../model/snapshot.ts'

export interface NativeRef extends NativeState {
  /** When it was the live state. */
  atMs: number
  /** What was mounted in the target, which the filesystem does not keep with it. */
  mounts: Raw[]
  /** The newest event that was known then. */
  eventsAt: number
}

export interface Kept {
  backend: NativeBackend
  ref: NativeRef
}

/** undefined: the store keeps it. */
export function keptOf(snapshot: Pick<Snapshot, 'backend' | 'nativeRef'>): Kept | undefined {
  const backend = snapshot.nativeRef === undefined ? undefined : nativeBackend(snapshot.backend)
  return backend && { backend, ref: JSON.parse(snapshot.nativeRef!) as NativeRef }
}

/** Where it is and what it takes; undefined when the store keeps it. */
export function nativeUsage(snapshot: Snapshot): NativeUsage | undefined {
  const kept = keptOf(snapshot)
  return kept && { where: kept.backend.whereOf(kept.ref), bytes: kept.backend.usageBytes(kept.ref) }
}
