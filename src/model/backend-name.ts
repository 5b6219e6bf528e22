/** Who can be asked to keep a snapshot. */
export const backendNames = ['auto', 'cas', 'btrfs', 'zfs', 'apfs', 'tmutil', 'archive'] as const
export type BackendName = (typeof backendNames)[number]
