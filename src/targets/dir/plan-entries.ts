/** How a plan compares entries, and what it says of a tree that it cannot read. */
import { SavepointError } from '../../errors/errors.ts'
import type { Entry, Id } from '../../model/entry.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import { sameContent, sameEntry, sameMetadata } from '../../store/tree-diff.ts'

export function lostDirectory(directory: Raw, cause: SavepointError): SavepointError {
  const shown = directory === '' ? 'the target' : showPath(directory)
  return new SavepointError(
    'store.damaged',
    `Cannot restore: the store has lost the list of ${shown} (${cause.message})`,
    {
      hint: `Nothing was changed. ${cause.hint?.includes('--repair') ? cause.hint : '`savepoint verify` shows what is affected; `savepoint rollback SNAP -- PATH` restores what is intact'}`,
      data: { paths: [shown] },
      cause,
    },
  )
}

export const treeOf = (entry: Entry | undefined): Id | undefined => (entry?.kind === 'dir' ? entry.content : undefined)

/** The same but for times: a touch is not an edit. */
export const sameAside = (a: Entry | undefined, b: Entry | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameContent(a, b) && sameMetadata(a, b))

export const sameDeep = (a: Entry | undefined, b: Entry | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameEntry(a, b) && a.content === b.content)

export const isKnown = (entry: Entry | undefined): boolean => entry !== undefined && entry.reason !== 'excluded'

/**
 * Of what an operation left where it was not captured: what the rules excluded it left alone, and what it could not look at nobody
 * can tell from an edit since. But where a mount or subvolume was moved away, nothing is left that could be lost.
 */
export const isOutOfTheWay = (base: Entry, live: Entry | undefined): boolean => base.reason === 'mount' && !live
