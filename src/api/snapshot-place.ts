/** Where a snapshot stands in its timeline, which it does not say itself. */
import type { Savepoint, Snapshot } from '../index.ts'
import type { SnapshotPlace } from './json.ts'

export const placeOf = (savepoint: Pick<Savepoint, 'tags' | 'head'>, { id }: Snapshot): Required<SnapshotPlace> => ({
  tags: [...savepoint.tags()].flatMap(([name, of]) => (of === id ? [name] : [])),
  head: savepoint.head().id === id,
})
