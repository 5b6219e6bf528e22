/**
 * `export`: a snapshot as a tar archive that every tar reads. Streams, so that memory does not depend on the size. The
 * file appears under its name when it is whole and on disk, never before. Private (0600), because a snapshot holds
 * whatever the target held.
 */

import { closeSync, fsyncSync, lstatSync, openSync, type Stats, statSync, unlinkSync, writeSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { randomHex } from '../model/id.ts'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { syncDirectory } from '../store/durable.ts'
import { failpoint } from '../store/failpoint.ts'
import { GC_LOCK_WAIT_MS } from '../store/store.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import { type Compression, compressionByName, createCompressor } from './archive-compression.ts'
import { archivePath, explainArchive, shownFile } from './archive-file.ts'
import { tarBytes } from './archive-tar-write.ts'
import type { Context } from './context.ts'
import { keptMatcher } from './kept-matcher.ts'
import type { ExportResult } from './results.ts'

const RENAME_NOREPLACE = 1

export interface ExportOptions {
  /** With the files that only `exclude.keep` brought into the snapshot, such as .env. */
  withKept?: boolean
}

/** Regular files that match `exclude.keep` are left out unless asked for, whatever git says of them; all are listed. */
export async function exportSnapshot(
  ctx: Context,
  ref: string,
  file: string,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const snapshot = resolveSnapshot(ctx.db, ref)
  const path = archivePath(ctx, 'export', file)
  const compression = compressionByName(file)
  refuseExisting(path, ctx.force)
  const leftOut: Raw[] = []
  const isKept = options.withKept ? () => false : keptMatcher(ctx.config.snapshots.exclude.keep)
  const progress = { phase: 'exporting', files: 0, bytes: 0, totalFiles: snapshot.files, totalBytes: snapshot.bytes }
  // Collection waits: what is being written must not go meanwhile.
  const lock = await ctx.store.lock('shared', 'export a snapshot', { waitMs: GC_LOCK_WAIT_MS, signal: ctx.signal })
  try {
    const archive = tarBytes({
      store: ctx.store,
      root: rootEntryOf(ctx.store, snapshot.root),
      dirTimeMs: snapshot.createdAt,
      leaveOut: isKept,
      onEntry: (_, entry) => count(progress, entry),
      onLeftOut: left => leftOut.push(left),
    })
    await writeArchive(ctx, path, compression, reportEach(ctx, archive, progress))
  } catch (error) {
    throw explainArchive(ctx, 'export', `${snapshot.id} to ${shownFile(path)}`, error)
  } finally {
    lock.release()
  }
  return { file: shownFile(path), snapshot, files: progress.files, bytes: statSync(path).size, leftOut }
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
): Generator<Buffer> {
  for (const piece of pieces) {
    ctx.signal?.throwIfAborted()
    yield piece
    ctx.progress?.({ ...progress })
  }
}

/** Temp file beside it, fsync, rename, fsync of the directory. */
async function writeArchive(
  ctx: Context,
  path: Buffer,
  compression: Compression,
  pieces: Iterable<Buffer>,
): Promise<void> {
  const directory = path.subarray(0, path.lastIndexOf(0x2f) + 1)
  const name = `.savepoint-export-${randomHex(8)}`
  const temporary = Buffer.concat([directory, Buffer.from(name)])
  const fd = openSync(temporary, 'wx', 0o600)
  try {
    try {
      const compressor = createCompressor(compression)
      const source = Readable.from(pieces, { objectMode: false })
      if (compressor) await pipeline(source, compressor, writeTo(fd))
      else await pipeline(source, writeTo(fd))
      failpoint('export:before-sync')
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    failpoint('export:before-rename')
    publish(directory, name, path, ctx.force)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
  syncDirectory(directory)
}

const writeTo = (fd: number): Writable =>
  new Writable({
    write(piece: Buffer, _encoding, done) {
      try {
        for (let at = 0; at < piece.length; ) at += writeSync(fd, piece, at)
        done()
      } catch (error) {
        done(error as Error)
      }
    },
  })

/** The last look at the name and taking it are one step where the system can do that. */
function publish(directory: Buffer, temporary: string, path: Buffer, force: boolean): void {
  const root = addon.openRoot(directory)
  const name = rawFromBytes(path.subarray(directory.length))
  try {
    addon.renameAt(root, temporary, name, force ? 0 : RENAME_NOREPLACE)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw alreadyThere(path)
    if (force || (errnoOf(error) !== 'EINVAL' && errnoOf(error) !== 'ENOSYS')) throw error
    refuseExisting(path, force)
    addon.renameAt(root, temporary, name, 0)
  } finally {
    addon.close(root)
  }
}

function refuseExisting(path: Buffer, force: boolean): void {
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
  if (!force) throw alreadyThere(path)
}

const alreadyThere = (path: Buffer): SavepointError =>
  new SavepointError('usage', `Cannot export to ${shownFile(path)}: it exists`, {
    hint: 'Name another file, or say --force to replace it',
  })
