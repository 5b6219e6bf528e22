/** `bundle verify`: everything that can be wrong with a bundle, all of it at once. */
import { SavepointError } from '../errors/errors.ts'
import type { Bundle } from './bundle.ts'
import type { State } from './manifest.ts'
import type { BundleVerifyResult } from './results.ts'
import { problemsOf } from './sound-states.ts'

const MAX_PROBLEMS = 100

/** The bundle itself was opened: its manifest is sound. Reads every content. */
export function verifyBundle(bundle: Bundle): BundleVerifyResult {
  const problems: string[] = []
  const tell = (problem: string) => void (problems.length < MAX_PROBLEMS && problems.push(problem))
  const named = new Map<string, State>()
  for (const problem of problemsOf(bundle.files)) tell(problem)
  for (const { path, before, after } of bundle.files) {
    for (const [side, state] of Object.entries({ before, after })) {
      if (state.blob === undefined) continue
      const other = named.get(state.blob)
      if (!other) named.set(state.blob, state)
      else if (other.sha256 !== state.sha256 || other.size !== state.size)
        tell(`${path} (${side}): ${state.blob} is said to be two different contents`)
    }
  }
  let bytes = 0
  const known = blobKeys(bundle, named.size > 0, tell)
  if (known) {
    const used = new Set<string>()
    for (const state of byPlace(bundle, named.values())) {
      for (const key of bundle.keysOf(state)) {
        if (!bundle.blobs.keys.has(key)) break
        used.add(key)
      }
      bytes += verifyContent(bundle, state, tell)
    }
    for (const key of known) if (!used.has(key)) tell(`blobs.parquet has ${key}, which nothing refers to`)
  }
  return { files: bundle.files.length, blobs: named.size, bytes, complete: bundle.manifest.complete, problems }
}

function blobKeys(bundle: Bundle, isNeeded: boolean, tell: (problem: string) => void): string[] | undefined {
  if (!bundle.hasBlobs) {
    if (isNeeded) tell('blobs.parquet is missing')
    return undefined
  }
  try {
    return [...bundle.blobs.keys.keys()]
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    tell(error.message)
    return undefined
  }
}

/** In the order of the file, so that each page is read once. */
function byPlace(bundle: Bundle, states: Iterable<State>): State[] {
  const order = (state: State) => {
    const place = bundle.blobs.keys.get(state.blob!)
    return place ? place.group * 2 ** 20 + place.row : 0
  }
  return [...states].sort((a, b) => order(a) - order(b))
}

function verifyContent(bundle: Bundle, state: State, tell: (problem: string) => void): number {
  let bytes = 0
  try {
    for (const piece of bundle.pieces(state)) bytes += piece.length
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    tell(error.message)
  }
  return bytes
}
