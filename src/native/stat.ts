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
  rdevMajor: number
  rdevMinor: number
  blocks: number
}
