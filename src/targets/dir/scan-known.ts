/**
 * Looks at all directories that the last capture knew, at once: their listing needs no walk from above, so nothing waits
 * for JavaScript in between. When all of them are as they were, so is the whole tree; when a few are not, the walk visits
 * only those; and it uses the listings.
 */
import { isWithin, type Raw } from '../../model/raw-path.ts'
import { addon, SCAN_HEADER, SPAN } from '../../native/addon.ts'
import type { CacheBytes } from './cache-bytes.ts'
import { isGitDir, NOTEWORTHY } from './noteworthy-names.ts'
import { type CachedDir, type StatCache, storedSpan } from './stat-cache.ts'
import { type Listing, splitListings } from './walk-record.ts'

/** Scans in flight: enough for the threads of libuv. */
const SCANS = 4

export interface KnownScan {
  /** Directories that are not as the cache says: other entries, or entries with other times. */
  changed: { path: Raw; listing: Listing }[]
  /** By path; empty when nothing changed. None of a git directory, where the order of looking matters. */
  listings: Map<Raw, Listing>
}

export async function scanKnown(root: number, cache: StatCache): Promise<KnownScan> {
  const scans = await scanParts(root, [...cache.dirs], part => inBytes(cache.bytes, dirsOf(part)))
  const result: KnownScan = { changed: [], listings: new Map() }
  if (!scans.every(({ isSame }) => isSame)) for (const { part, scan } of scans) addListings(result, part, scan)
  return result
}

/** Whether these directories of the cache are all still as it says. */
export async function areAsKnown(root: number, cache: StatCache, paths: ReadonlySet<Raw>): Promise<boolean> {
  const dirs: KnownDir[] = []
  for (const path of paths) {
    const dir = cache.dirs.get(path)
    if (!dir) return false
    dirs.push([path, dir])
  }
  return (await scanRecords(root, dirs)).every(({ isSame }) => isSame)
}

/** The directories of the cache that are not as it says any more, and what they hold now. */
export async function changedDirs(root: number, cache: StatCache): Promise<KnownScan['changed']> {
  const result: KnownScan = { changed: [], listings: new Map() }
  for (const { part, scan, isSame } of await scanRecords(root, [...cache.dirs]))
    if (!isSame) addListings(result, part, scan)
  return result.changed
}

/** Compares with the records wherever they are. */
const scanRecords = (root: number, dirs: KnownDir[]) => scanParts(root, dirs, part => copied(dirsOf(part)))

/** What is known of some directories, for a scan that compares with it. */
export const knownOf = ({ bytes }: StatCache, dirs: (CachedDir | undefined)[]): Known =>
  bytes.isInFile ? copied(dirs) : inBytes(bytes, dirs)

type KnownDir = [Raw, CachedDir]
const dirsOf = (part: KnownDir[]): CachedDir[] => part.map(([, dir]) => dir)
/** The records that are known, and where in them those of each directory lie. */
type Known = { bytes: Buffer; spans: Buffer }

function scanParts(root: number, dirs: KnownDir[], knownOf: (part: KnownDir[]) => Known) {
  const size = Math.ceil(dirs.length / SCANS)
  const parts = Array.from({ length: SCANS }, (_, i) => dirs.slice(i * size, (i + 1) * size))
  return Promise.all(parts.filter(part => part.length > 0).map(part => scanPart(root, part, knownOf(part))))
}

async function scanPart(root: number, part: KnownDir[], { bytes, spans }: Known) {
  const paths = Buffer.from(part.map(([path]) => path).join('\0'), 'latin1')
  const scan = await addon.scanDirs(root, paths, bytes, spans)
  // A directory with nothing to say takes a header and no more.
  let isSame = scan.length === part.length * SCAN_HEADER.size
  for (let at = SCAN_HEADER.same; isSame && at < scan.length; at += SCAN_HEADER.size)
    isSame = scan.readUInt32LE(at) === 1
  return { part, scan, isSame }
}

function addListings({ changed, listings }: KnownScan, part: KnownDir[], scan: Buffer): void {
  for (const [i, listing] of splitListings(scan, part.length).entries()) {
    const [path, dir] = part[i]!
    if (!listing.same) changed.push({ path, listing })
    const isGits = isGitDir(dir.noteworthy) || (path.includes('.git') && /(^|\/)\.git(\/|$)/.test(path))
    if (!isGits) listings.set(path, listing)
  }
}

/** Those of an earlier pass, or none, lie elsewhere, and count as unknown. */
function inBytes(bytes: CacheBytes, dirs: (CachedDir | undefined)[]): Known {
  const spans = Buffer.alloc(dirs.length * SPAN.size, 0xff)
  dirs.forEach((dir, i) => {
    const span = storedSpan(dir)
    if (!span) return
    spans.writeUInt32LE(span.offset, i * SPAN.size + SPAN.offset)
    spans.writeUInt32LE(span.length, i * SPAN.size + SPAN.length)
  })
  return { bytes: bytes.all(), spans }
}

function copied(dirs: (CachedDir | undefined)[]): Known {
  const spans = Buffer.alloc(dirs.length * SPAN.size, 0xff)
  const records: Buffer[] = []
  let offset = 0
  dirs.forEach((dir, i) => {
    if (!dir) return
    records.push(dir.records)
    spans.writeUInt32LE(offset, i * SPAN.size + SPAN.offset)
    spans.writeUInt32LE(records.at(-1)!.length, i * SPAN.size + SPAN.length)
    offset += records.at(-1)!.length
  })
  return { bytes: Buffer.concat(records), spans }
}

/**
 * The directories that a walk must visit after the scan, given that `isWhole`; undefined: all of them. It goes on below
 * one whose ignore rules turn out to be others. Of a git directory with a change all is visited, because what its refs
 * name must be looked for after the refs.
 */
export function dirsToVisit(cache: StatCache, { changed }: KnownScan): Set<Raw> | undefined {
  if (changed.length > cache.dirs.size / FEW) return undefined
  const visit = new Set<Raw>()
  for (const { path, listing } of changed) {
    // One that is gone is missing in the directory above, which is in the list as well.
    if (listing.errno === ENOENT || listing.errno === ENOTDIR) continue
    visit.add(path)
  }
  for (const [gitDir, { noteworthy }] of cache.dirs) {
    if (!isGitDir(noteworthy) || !changed.some(({ path }) => isWithin(path, gitDir))) continue
    for (const path of cache.dirs.keys()) if (isWithin(path, gitDir)) visit.add(path)
  }
  return visit
}

/** With more than one in so many changed, a walk over everything costs no more. */
const FEW = 8
const ENOENT = 2
const ENOTDIR = 20

/** Whether the same entries mean the same tree: under the same rules, with nothing that must always be looked at again. */
export function isWhole(cache: StatCache, rules: string): boolean {
  const root = cache.dirs.get('')
  if (root?.rulesIn !== rules) return false
  for (const [path, dir] of cache.dirs) {
    if (dir.skipped > 0 || dir.overridden) return false
    // A repository inside has rules of its own, which may come from elsewhere.
    if ((dir.noteworthy & NOTEWORTHY.git) !== 0 && path !== '') return false
  }
  return true
}
