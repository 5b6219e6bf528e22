/** What is known of a command of a run that has ended. */
import type { PartlyKnown } from './edits-before-guards.ts'
import type { Touches } from './edits-meanwhile.ts'
import type { TraceSummary } from './results.ts'
import type { ChildEnd } from './run-child.ts'
import type { Displacer } from './target-place.ts'

export interface Supervised {
  end: ChildEnd
  /** Of the target, should it not be where it was. */
  displacedBy?: Displacer
  /** Made so late that no snapshot was taken after it. */
  commit?: string
  /** What it has left counts as its work until this is called first: when the state at its end is captured. */
  settle(): Promise<Settled>
}

export interface Settled {
  trace: TraceSummary | undefined
  /** Undefined when it is not known what it touched. */
  touched?: Touches | PartlyKnown
}
