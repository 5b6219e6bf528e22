/**
 * `import`: an archive as a snapshot. It becomes a root of its own in the timeline; HEAD and the live files stay as they
 * are, and `rollback` goes to it later. Archives are not trusted: everything is checked, nothing is extracted, and a
 * refused one leaves at most unreferenced bytes in the store, which `gc` takes away.
 */
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { isDamage, SavepointError } from '../errors/errors.ts'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { ROOT_NAME, rootEntryOf } from '../targets/dir/capture.ts'
import { ArchiveBytes } from './archive-bytes.ts'
import {
  type Compression,
  checkNothingFollows,
  compressionByContent,
  createDecompressor,
} from './archive-compression.ts'
import { guardExpansion } from './archive-expansion.ts'
import { archivePath, explainArchive, shownFile } from './archive-file.ts'
import { ArchiveReceiver } from './archive-receiver.ts'
import { type ImportLimits, importLimits, unsafeArchive, withoutSuspicion } from './archive-unsafe.ts'
import { type Context, withTimelineLock } from './context.ts'
import { checkLabel } from './names.ts'
import { newOperation } from './new-operation.ts'
import { recoverPending } from './recover.ts'
import type { ImportResult } from './results.ts'
import { checkManualPool } from './snapshot.ts'
import { addWholeState } from './whole-state.ts'

const READ_BYTES = 256 * 1024
const HEAD_BYTES = 512

export interface ImportOptions {
  label?: string
  /** Also when it looks like a bomb. */
  force?: boolean
}

export async function importArchive(
  ctx: Context,
  file: string,
  options: ImportOptions = {},
  limits: ImportLimits = importLimits,
): Promise<ImportResult> {
  if (options.label !== undefined) checkLabel(options.label)
  const path = archivePath(ctx, 'import', file)
  return withTimelineLock(ctx, 'import an archive', async () => {
    try {
      const compression = sniff(path)
      await recoverPending(ctx)
      checkManualPool(ctx)
      return await importInto(ctx, path, compression, options, options.force ? withoutSuspicion(limits) : limits)
    } catch (error) {
      throw explainArchive(ctx, 'import', shownFile(path), explainDamage(error))
    }
  })
}

async function importInto(
  ctx: Context,
  path: Buffer,
  compression: Compression,
  options: ImportOptions,
  limits: ImportLimits,
): Promise<ImportResult> {
  const writer = await ctx.store.writer(ctx.signal)
  try {
    const content = await storeArchive(ctx, path, compression, writer, limits)
    failpoint('import:before-commit')
    writer.commit()
    failpoint('import:before-row')
    const snapshot = addRow(ctx, path, { ...content, sizeDelta: writer.newBytes, label: options.label })
    return { snapshot, files: content.files }
  } finally {
    writer.close()
  }
}

/** What is in it is in the store once the writer commits. */
export async function storeArchive(
  ctx: Context,
  path: Buffer,
  compression: Compression,
  writer: StoreWriter,
  limits: ImportLimits,
): Promise<{ root: Id; files: number; bytes: number }> {
  const receiver = new ArchiveReceiver(ctx, writer, limits)
  try {
    await readArchive(ctx, path, compression, receiver, limits)
    const root = receiver.tree.write(writer, defaultRoot(ctx))
    return { root, files: receiver.tree.files, bytes: receiver.tree.contentBytes }
  } finally {
    receiver.close()
  }
}

async function readArchive(
  ctx: Context,
  path: Buffer,
  compression: Compression,
  receiver: ArchiveReceiver,
  limits: ImportLimits,
): Promise<void> {
  const source = createReadStream(path, { highWaterMark: READ_BYTES })
  const decompressor = createDecompressor(compression)
  const receive = async (pieces: AsyncIterable<Buffer>) => {
    const bytes = new ArchiveBytes(guardExpansion(ctx, pieces, () => source.bytesRead, limits))
    try {
      await receiver.receive(bytes)
    } finally {
      await bytes.close()
    }
  }
  if (!decompressor) await pipeline(source, receive)
  else {
    await pipeline(source, decompressor, receive)
    checkNothingFollows(path, decompressor.bytesWritten, compression)
  }
}

function addRow(
  ctx: Context,
  path: Buffer,
  imported: { root: Id; files: number; bytes: number; sizeDelta: number; label: string | undefined },
): Snapshot {
  return ctx.db.transaction(() => {
    const state = { ...imported, type: 'import', createdAt: ctx.now(), parent: undefined } as const
    const snapshot = addWholeState(ctx.store, ctx.db, state, undefined)
    const detail = { file: shownFile(path), snapshot: snapshot.id }
    ctx.db.addOperation(newOperation(ctx, 'import', `imported ${detail.file} as ${snapshot.id}`, detail))
    return snapshot
  })
}

/** When the archive does not say what the directory itself is like, it is as it was, unless the store has lost that. */
function defaultRoot(ctx: Context): Entry {
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  try {
    if (head) return { ...rootEntryOf(ctx.store, head.root) }
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  return { ...blankEntry(ROOT_NAME, 'dir'), mode: 0o755, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
}

/** What the file is, by its first bytes. Never blocks on a FIFO. */
function sniff(path: Buffer): Compression {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) {
      throw new SavepointError('usage', `Cannot import ${shownFile(path)}: it is no regular file`, {
        hint: 'Name a .tar, .tar.gz or .tar.zst file',
      })
    }
    const head = Buffer.alloc(HEAD_BYTES)
    return compressionByContent(head.subarray(0, readSync(fd, head, 0, HEAD_BYTES, 0)), shownFile(path))
  } finally {
    closeSync(fd)
  }
}

/** Errors of zlib are the archive's. */
function explainDamage(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (typeof code !== 'string' || !/^(Z_|ZSTD_)/.test(code)) return error
  const isShort = code === 'Z_BUF_ERROR'
  return unsafeArchive(isShort ? 'ends too early' : `is damaged: ${(error as Error).message}`, undefined, error)
}
