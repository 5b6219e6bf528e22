/** How ZFS names what it keeps of a timeline, and what its commands print. */
import type { NativeState } from './native-backend.ts'

/** A place is everything of the name but the id: `dataset@savepoint-KEY`. */
export const placeIn = (dataset: string, key: string): string => `${dataset}@savepoint-${key}`
export const nameOf = ({ place, name }: NativeState): string => `${place}-${name}`
export const datasetOf = (place: string): string => place.slice(0, place.indexOf('@'))
export const poolOf = (place: string): string => datasetOf(place).split('/')[0]!
/** Without the dataset. Nobody else's has the same, but a copy that was sent and received does. */
export const shortNameOf = (state: NativeState): string => nameOf(state).slice(nameOf(state).indexOf('@') + 1)

/** With -H: a line for each, and its columns. */
export const linesOf = (stdout: Buffer): string[][] =>
  stdout
    .toString()
    .split('\n')
    .filter(line => line !== '')
    .map(line => line.split('\t'))
