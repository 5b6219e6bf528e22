/** Whether the states of a bundle make sense beyond the shape of each field: what `verify` tells of, and a restore refuses. */
import { BadBundle } from './bad-bundle.ts'
import type { BundleFile } from './bundle.ts'
import { pathText, rawOf } from './bundle-paths.ts'
import type { State } from './manifest.ts'

/** What a link can hold. */
const MAX_TARGET_BYTES = 4095

export function* problemsOf(files: Iterable<BundleFile>): Generator<string> {
  for (const { path, before, after } of files) {
    for (const [side, state] of Object.entries({ before, after })) {
      const problem = problemOf(state)
      if (problem !== undefined) yield `${path} (${side}): ${problem}`
    }
  }
}

/** Before anything is done with them. */
export function refuseProblems(files: Iterable<BundleFile>): void {
  for (const problem of problemsOf(files)) throw new BadBundle(problem)
}

function problemOf(state: State): string | undefined {
  const { exists, tombstone, type, blob, sha256, size, target, mode = 0, group_mode } = state
  if (!exists) return type !== undefined || blob !== undefined ? 'does not exist, and yet is something' : undefined
  if (tombstone) return 'exists, and yet is a tombstone'
  if (type === undefined) return 'is of no type'
  if (blob !== undefined && (sha256 === undefined || size === undefined))
    return 'has a content without a hash or a size'
  if (blob !== undefined && type !== 'file') return 'has a content, and is no file'
  // It would come back with more than its mode, which is what is shown of it.
  if (((group_mode ?? 0) & ~(mode >> 3)) !== 0) return 'gives its group more than its mode allows'
  return type === 'symlink' ? problemOfTarget(target, state.target_bytes) : undefined
}

function problemOfTarget(target: string | undefined, bytes: string | undefined): string | undefined {
  if (target === undefined || target === '') return 'is a symlink without a target'
  const raw = rawOf(target, bytes)
  if (bytes !== undefined && pathText(raw).text !== target) return 'has a target whose bytes are of another one'
  return raw.includes('\0') || raw.length > MAX_TARGET_BYTES ? 'has a target that no symlink can have' : undefined
}
