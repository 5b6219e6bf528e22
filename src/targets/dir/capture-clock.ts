/**
 * Proof by change times that a capture shows one state. What was read after the capture began and has an older change
 * time was not changed from the beginning until it was read: if that holds for everything, then all of it is the state at
 * the beginning, and there is no need to look at the tree once more.
 */
import { monotonicMs } from '../../model/monotonic.ts'
import { addon, RECORD } from '../../native/addon.ts'
import type { PassResult } from './pass.ts'
import { COARSE_SLACK_MS } from './racy.ts'
import { recordCtimeNs, recordLength } from './walk-record.ts'

const NS_PER_MS = 1_000_000n
/** How exactly the two clocks of this process agree while nobody sets one of them. */
const SET_SLACK_MS = 20
/** Filesystems whose times come from the clock of this kernel: ext4, xfs, btrfs, tmpfs, overlayfs, f2fs, bcachefs, zfs. */
const ownClock = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0xca451a4e, 0x2fc12fc1])

export class CaptureClock {
  readonly startedAtMs = Date.now()
  private readonly offsetMs = this.startedAtMs - monotonicMs()
  private readonly isOwn: boolean

  constructor(root: number) {
    this.isOwn = ownClock.has(addon.statfs(root).type)
  }

  areAsAtStart({ cache, unsettled, newestListingNs }: PassResult): boolean {
    // A clock that was set back meanwhile proves nothing.
    const wasSetBack = Date.now() - monotonicMs() < this.offsetMs - SET_SLACK_MS
    const limit = BigInt(this.startedAtMs - COARSE_SLACK_MS) * NS_PER_MS
    if (!this.isOwn || wasSetBack || newestListingNs === undefined || newestListingNs >= limit) return false
    const high = Number(limit >> 32n)
    for (const path of unsettled) {
      const records = cache.dirs.get(path)?.records
      if (!records) return false
      for (let at = 0; at < records.length; at += recordLength(records, at)) {
        const recordHigh = records.readInt32LE(at + RECORD.ctimeNs + 4)
        // Smudged, or recent; in doubt the exact numbers decide.
        if (recordHigh < 0 || (recordHigh >= high && recordCtimeNs(records, at) >= limit)) return false
      }
    }
    return true
  }
}
