/** Removes a directory with everything in it, beneath a root and without following links. May be called again. */
import { errnoOf } from '../../errors/errors.ts'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { SafeDirs } from './safe-dirs.ts'
import { forEachRecord, isMountPoint, recordName, recordType, S_IFDIR, splitListings } from './walk-record.ts'

const EACCES = 13

/** Returns what the system does not let this user remove (an immutable file, another user's directory). */
export async function removeTree(root: number, path: Raw, safe: SafeDirs): Promise<Raw[]> {
  const stuck: Raw[] = []
  const remove = (child: Raw, inside: Raw, work: () => void) => {
    try {
      safe.in([inside], work)
    } catch (error) {
      const code = errnoOf(error) ?? ''
      if (code === 'ENOENT') return
      if (!['EACCES', 'EPERM', 'ENOTEMPTY', 'EBUSY'].includes(code)) throw error
      stuck.push(child)
    }
  }
  const dirs: Raw[] = [path]
  const again = new Set<Raw>()
  for (let at = 0; at < dirs.length; ) {
    const batch = dirs.slice(at, at + 256)
    at += batch.length
    const listings = splitListings(await addon.scanDirs(root, Buffer.from(batch.join('\0'), 'latin1')), batch.length)
    for (const [i, { records, errno }] of listings.entries()) {
      // Closed by its owner, who is this user: listed again behind everything that is known so far. Once in any case, as what was
      // in the way may have been opened for another one of the batch.
      if (errno === EACCES && (safe.open(batch[i]!) || !again.has(batch[i]!))) {
        again.add(batch[i]!)
        dirs.push(batch[i]!)
      }
      forEachRecord(records, offset => {
        const child = joinRaw(batch[i]!, recordName(records, offset))
        if (isMountPoint(records, offset)) return
        if (recordType(records, offset) === S_IFDIR) dirs.push(child)
        else remove(child, batch[i]!, () => addon.unlinkAt(root, child))
      })
    }
  }
  for (const dir of dirs.reverse()) remove(dir, dir, () => addon.rmdirAt(root, dir))
  return stuck
}
