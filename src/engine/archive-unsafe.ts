/** How an archive that must not be imported is refused, and the limits that an honest one stays within. */
import { SavepointError } from '../errors/errors.ts'
import { type Raw, showPath } from '../model/raw-path.ts'

const GIB = 1024 ** 3

export const importLimits = {
  /** Files, directories, and the missing parents that are made for them. */
  entries: 5_000_000,
  /** Components of a path, its own name included. */
  depth: 5000,
  /** Names, link targets and xattrs together: all of them are held in memory until the end. */
  metadataBytes: 512 * 1024 ** 2,
  /** One extended header (PAX, GNU long name). */
  headerBytes: 64 * 1024 ** 2,
  /** One encoded directory: it must fit into a block of the store. */
  treeBytes: 48 * 1024 ** 2,
  sparseSegments: 1_000_000,
  /** All holes of sparse files together: they cost no disk, but time. */
  holeBytes: 256 * GIB,
  /**
   * Beyond `freeRatioBytes` (a second's work) an archive may not unpack to more than this many times its size. Sources and
   * logs reach 5 to 50; files of zeros reach more, but what we export has them as holes; gzip ends at 1030, zstd at 30,000.
   */
  ratio: 100,
  freeRatioBytes: GIB / 2,
  /** What it unpacks to, in shares of the room that the disk has: nobody could restore more. */
  roomShare: 1,
}

export type ImportLimits = typeof importLimits

/** --force: for somebody who knows where the archive comes from. What the format or the disk cannot hold stays refused. */
export const withoutSuspicion = (limits: ImportLimits): ImportLimits => ({
  ...limits,
  holeBytes: Number.POSITIVE_INFINITY,
  ratio: Number.POSITIVE_INFINITY,
  roomShare: Number.POSITIVE_INFINITY,
})

/** Of an archive that we wrote ourselves: what a capture took in goes in again. One directory must still fit into a block. */
export const ofOurOwn = (limits: ImportLimits): ImportLimits => ({
  ...withoutSuspicion(limits),
  entries: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  metadataBytes: Number.POSITIVE_INFINITY,
  headerBytes: Number.POSITIVE_INFINITY,
  sparseSegments: Number.POSITIVE_INFINITY,
})

const NOTHING_DONE = 'Nothing was imported'

/** `why` completes the sentence: it names what is wrong with `path`, or with the archive when there is none. */
export const unsafeArchive = (why: string, path?: Raw, cause?: unknown): SavepointError =>
  new SavepointError(
    'archive.unsafe',
    `Cannot import the archive: ${path === undefined ? 'it' : `"${shortened(path)}"`} ${why}`,
    {
      hint: NOTHING_DONE,
      data: path === undefined ? undefined : { path: shortened(path) },
      cause,
    },
  )

/** A limit that --force lifts. */
export const suspiciousArchive = (why: string): SavepointError =>
  new SavepointError('archive.unsafe', `Cannot import the archive: it ${why}`, {
    hint: `${NOTHING_DONE}. If you trust its origin, say --force`,
  })

export const truncatedArchive = (cause?: unknown): SavepointError => unsafeArchive('ends too early', undefined, cause)

const MAX_SHOWN = 200
const shortened = (path: Raw): string => {
  const shown = showPath(path.slice(0, MAX_SHOWN))
  return path.length > MAX_SHOWN ? `${shown}…` : shown
}
