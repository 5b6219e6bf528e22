import type { Entry } from '../model/entry.ts'

/** An entry for tests: a regular file unless told otherwise. */
export function fixtureEntry(fields: Partial<Entry> = {}): Entry {
  return {
    name: 'x',
    kind: 'file',
    mode: 0o644,
    uid: 1000,
    gid: 1000,
    mtimeNs: 1n,
    size: 0,
    content: '',
    target: '',
    linkGroup: 0n,
    xattrs: undefined,
    sparse: false,
    rdevMajor: 0,
    rdevMinor: 0,
    reason: undefined,
    ...fields,
  }
}
