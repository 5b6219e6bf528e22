import type { UnknownReason } from '../../index.ts'

const words: Partial<Record<UnknownReason, string>> = {
  mount: 'mount or subvolume',
  'other-store': 'another Savepoint store',
  purged: 'purged from history',
}

/** Why something was not captured, in brackets behind its path. */
export const reasonWords = (reason: UnknownReason): string => words[reason] ?? reason
