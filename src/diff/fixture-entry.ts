import { blankEntry, type Entry } from '../model/entry.ts'

/** An entry for tests: a regular file unless told otherwise. */
export const fixtureEntry = (fields: Partial<Entry> = {}): Entry => ({
  ...blankEntry('x', 'file'),
  mode: 0o644,
  uid: 1000,
  gid: 1000,
  ...fields,
})
