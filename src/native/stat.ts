/** What the addon tells of an entry: statx, without following a link. */
export interface Stat {
  mode: number
  nlink: number
  uid: number
  gid: number
  size: number
  mtimeNs: bigint
  ctimeNs: bigint
  btimeNs: bigint
  ino: bigint
  dev: bigint
  /** The number of the mount that it was reached by (Linux 5.8); 0 where that is not known. */
  mount: bigint
  /** Of LOCK. */
  locks: number
  rdevMajor: number
  rdevMinor: number
  blocks: number
}

/** What `chattr +i` and `chattr +a` set, where the filesystem tells it. */
export const LOCK = { immutable: 0x10, appendOnly: 0x20 } as const
