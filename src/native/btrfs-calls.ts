/** Calls of the addon for subvolumes of btrfs (native/addon/btrfs-send.c, fd-ops.c). */
export interface BtrfsCalls {
  /** A read-only btrfs snapshot of an open subvolume, as `name` in an open directory. It is there before this returns. */
  snapshotSubvolume(subvolume: number, directory: number, name: Buffer): void
  /** The stream of `btrfs send --no-data -p`, zeros after its end. Throws EPERM without privilege, and beyond `limit`. */
  btrfsDifferences(before: number, after: number, limit: number): Buffer
  /**
   * Of an open subvolume: its id, the one that it had where it was received from (16 bytes each), 1 when it was changed, as far as
   * that is on the disk, and 1 when it can be written.
   */
  subvolumeIdentity(subvolume: number): Buffer
}
