/** Calls of the addon for paths that a recording only looked at (native/addon/looks.h). */
export interface LooksCalls {
  /**
   * Looks again at the paths of a recording (`log`: src/tracers/record-log.ts) that were only looked at. `settled`: SETTLED there for each that is as it
   * was, sorted by their bytes: none that git may know, that is below a directory that was moved, or whose name JSON does not show as it is.
   * `rest`: where the other frames are (u32), in their order, as far as they are whole. Throws EFBIG where 32 bits are not enough.
   */
  settleLooks(log: Buffer): { settled: Buffer; rest: Buffer }
  /** What a manifest says of some of them, each behind a comma, as far as there is room; 64 KiB are enough for one. How many that are. */
  looksText(log: Buffer, settled: Buffer, from: number, to: number, out: Buffer): { done: number; bytes: number }
}
