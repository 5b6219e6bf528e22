/**
 * A file changed in the same tick of the filesystem's clock as the capture may change again without its timestamps
 * moving. Such records are smudged, so that the next capture reads the file once more (as git does with its index).
 * The threshold is the start of the capture, the same for all links of one file, so that a group is smudged as a whole.
 */

import type { Raw } from '../../model/raw-path.ts'
import { RECORD } from '../../native/addon.ts'
import { type StatCache, smudge } from './stat-cache.ts'
import { forEachRecord, recordCtimeNs, recordMtimeNs } from './walk-record.ts'

/** Kernel ticks are at most 10 ms; clocks of the process and of the filesystem may differ a little. */
const TICK_SLACK_MS = 50
/** Filesystems that store whole seconds (FAT: two). */
export const COARSE_SLACK_MS = 2100
const NS_PER_MS = 1_000_000n
const NS_PER_S = 1_000_000_000n

export function findRacy(cache: StatCache, touched: ReadonlySet<Raw>, startedAtMs: number): void {
  const fine = BigInt(startedAtMs - TICK_SLACK_MS) * NS_PER_MS
  const coarse = BigInt(startedAtMs - COARSE_SLACK_MS) * NS_PER_MS
  for (const path of touched) {
    const dir = cache.dirs.get(path)
    if (!dir) continue
    const { records } = dir
    forEachRecord(records, at => {
      // High words first: nearly all files are old, and comparing bigints for each would cost more than the walk.
      if (records.readInt32LE(at + RECORD.ctimeNs + 4) < Number(coarse >> 32n)) return
      const ctime = recordCtimeNs(records, at)
      const isCoarse = ctime % NS_PER_S === 0n && recordMtimeNs(records, at) % NS_PER_S === 0n
      if (ctime >= (isCoarse ? coarse : fine)) smudge(dir, at)
    })
  }
}
