/** What is watched of the target: not the directories that no snapshot has, which often are the largest. */
import { joinRaw, type Raw, rawFromBytes, rawFromText } from '../model/raw-path.ts'
import { forEachRecord, recordName, recordType, S_IFDIR } from '../targets/dir/walk-record.ts'
import { lastSeen } from './capture-live.ts'
import type { Context } from './context.ts'

/** They go as arguments to the helper; beyond this, what is ignored is watched without need. */
const MAX_BYTES = 64 * 1024

/** After a capture. What comes to be ignored during the run is watched: it costs a look, and no snapshot. */
export function watchedTree(ctx: Context): { path: Raw; ignored: Raw[] } {
  const path = rawFromBytes(ctx.targetPath)
  const ignored = [rawFromText(ctx.home)]
  let bytes = 0
  for (const [directory, { records, unknown, childDirs }] of lastSeen(ctx).dirs) {
    if (unknown === 0) continue
    const entered = new Set(childDirs)
    forEachRecord(records, at => {
      const name = recordName(records, at)
      if (recordType(records, at) !== S_IFDIR || entered.has(name)) return
      const place = `${path === '/' ? '' : path}/${joinRaw(directory, name)}`
      bytes += place.length
      if (bytes <= MAX_BYTES) ignored.push(place)
    })
  }
  return { path, ignored }
}
