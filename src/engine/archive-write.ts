/**
 * A state as an archive on disk. Streams, so that memory does not depend on the size. The file appears under its name when it
 * is whole and on disk, never before. Private (0600), because a state holds whatever the target held.
 */
import { closeSync, fsyncSync, lstatSync, openSync, type Stats, unlinkSync, writeSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ARCHIVE_TEMPORARY } from '../backends/archive.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { Hasher, idToHex, randomHex } from '../model/id.ts'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { syncDirectory } from '../store/durable.ts'
import { failpoint } from '../store/failpoint.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { type Compression, createCompressor } from './archive-compression.ts'
import { shownFile } from './archive-file.ts'
import { tarBytes } from './archive-tar-write.ts'
import type { Context } from './context.ts'

const RENAME_NOREPLACE = 1
const CHECK_EVERY_BYTES = 64 * 1024 * 1024

export interface WriteOptions {
  phase: string
  compression: Compression
  /** Takes the place of a file that is there. */
  replace: boolean
  leaveOut(path: Raw): boolean
  /** Called on the way, and before the file gets its name: throws when it must not go on. */
  check(): void
}

export interface Written {
  /** What is in it. */
  files: number
  leftOut: Raw[]
  /** Of the file itself. */
  bytes: number
  /** BLAKE3 of the file, in hex. */
  hash: string
}

/** Nobody may collect meanwhile. On failure there is no file. */
export async function writeArchive(
  ctx: Context,
  state: Pick<Snapshot, 'root' | 'createdAt' | 'files' | 'bytes'>,
  path: Buffer,
  options: WriteOptions,
): Promise<Written> {
  const progress = { phase: options.phase, files: 0, bytes: 0, totalFiles: state.files, totalBytes: state.bytes }
  const leftOut: Raw[] = []
  const pieces = tarBytes({
    store: ctx.store,
    root: rootEntryOf(ctx.store, state.root),
    dirTimeMs: state.createdAt,
    leaveOut: options.leaveOut,
    onEntry: (_, entry) => count(progress, entry),
    onLeftOut: left => leftOut.push(left),
  })
  const file = await writeFile(path, options, reportEach(ctx, pieces, progress, options))
  return { files: progress.files, leftOut, ...file }
}

function count(progress: { files: number; bytes: number }, entry: Entry): void {
  if (entry.kind === 'dir') return
  progress.files++
  progress.bytes += entry.size
}

function* reportEach(
  ctx: Context,
  pieces: Iterable<Buffer>,
  progress: Parameters<NonNullable<Context['progress']>>[0],
  { check }: WriteOptions,
): Generator<Buffer> {
  let [bytes, nextCheck] = [0, CHECK_EVERY_BYTES]
  for (const piece of pieces) {
    ctx.signal?.throwIfAborted()
    yield piece
    ctx.progress?.({ ...progress })
    bytes += piece.length
    if (bytes < nextCheck) continue
    check()
    nextCheck = bytes + CHECK_EVERY_BYTES
  }
}

/** Temp file beside it, fsync, rename, fsync of the directory. */
async function writeFile(
  path: Buffer,
  { compression, replace, check }: WriteOptions,
  pieces: Iterable<Buffer>,
): Promise<Pick<Written, 'bytes' | 'hash'>> {
  const directory = path.subarray(0, path.lastIndexOf(0x2f) + 1)
  const name = `${ARCHIVE_TEMPORARY}${randomHex(8)}`
  const temporary = Buffer.concat([directory, Buffer.from(name)])
  const file = new HashedFile(openSync(temporary, 'wx', 0o600))
  try {
    try {
      const compressor = createCompressor(compression)
      const source = Readable.from(pieces, { objectMode: false })
      if (compressor) await pipeline(source, compressor, file.stream())
      else await pipeline(source, file.stream())
      failpoint('export:before-sync')
      fsyncSync(file.fd)
    } finally {
      closeSync(file.fd)
    }
    check()
    failpoint('export:before-rename')
    publish(directory, name, path, replace)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
  syncDirectory(directory)
  return { bytes: file.bytes, hash: idToHex(file.hasher.digest()) }
}

class HashedFile {
  readonly hasher = new Hasher()
  readonly fd: number
  bytes = 0

  constructor(fd: number) {
    this.fd = fd
  }

  stream(): Writable {
    return new Writable({
      write: (piece: Buffer, _encoding, done) => {
        try {
          for (let at = 0; at < piece.length; ) at += writeSync(this.fd, piece, at)
          this.hasher.update(piece)
          this.bytes += piece.length
          done()
        } catch (error) {
          done(error as Error)
        }
      },
    })
  }
}

/** The last look at the name and taking it are one step where the system can do that. */
function publish(directory: Buffer, temporary: string, path: Buffer, replace: boolean): void {
  const root = addon.openRoot(directory)
  const name = rawFromBytes(path.subarray(directory.length))
  try {
    addon.renameAt(root, temporary, name, replace ? 0 : RENAME_NOREPLACE)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw alreadyThere(path)
    if (replace || (errnoOf(error) !== 'EINVAL' && errnoOf(error) !== 'ENOSYS')) throw error
    refuseExisting(path, replace)
    addon.renameAt(root, temporary, name, 0)
  } finally {
    addon.close(root)
  }
}

export function refuseExisting(path: Buffer, replace: boolean): void {
  let found: Stats
  try {
    found = lstatSync(path)
  } catch {
    return
  }
  if (!found.isFile()) {
    throw new SavepointError('usage', `Cannot export to ${shownFile(path)}: it exists and is no regular file`, {
      hint: 'Name a file that does not exist yet',
    })
  }
  if (!replace) throw alreadyThere(path)
}

const alreadyThere = (path: Buffer): SavepointError =>
  new SavepointError('usage', `Cannot export to ${shownFile(path)}: it exists`, {
    hint: 'Name another file, or say --force to replace it',
  })
