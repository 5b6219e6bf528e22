/**
 * Appends blocks to a pack that this process alone holds (flock). A pack that is not full is continued, so that many
 * small snapshots do not become many small files; the torn tail of a writer that died is cut off first.
 */

import { closeSync, fdatasync, fdatasyncSync, fstatSync, ftruncateSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf, isNoRoom, SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import { addon } from '../native/addon.ts'
import { syncDirectory } from './durable.ts'
import type { ObjectIndex } from './object-index.ts'
import { PACK_HEADER_BYTES, packHeader } from './pack-format.ts'
import { giveUpReserve, keepReserve } from './reserve.ts'

const PACK_FULL_BYTES = 256 * 1024 * 1024
const LOCK_EXCLUSIVE_NOW = 2 | 4
/** So much is appended before the kernel is told to begin writing it. */
const WRITEBACK_BYTES = 8 * 1024 * 1024

export class PackWriter {
  readonly pack: number
  private readonly file: string
  private readonly fd: number
  private end: number
  private handedOver: number
  /** What the index will say once this writer commits. */
  get bytes(): number {
    return this.end
  }

  private constructor(pack: number, file: string, fd: number, end: number) {
    this.pack = pack
    this.file = file
    this.fd = fd
    this.end = end
    this.handedOver = end
  }

  static open(directory: string, index: ObjectIndex, mayContinue: boolean): PackWriter {
    if (mayContinue) {
      for (const row of index.packs().reverse()) {
        if (row.bytes >= PACK_FULL_BYTES) continue
        const writer = PackWriter.tryContinue(join(directory, row.name), row.id, index)
        if (writer) return writer
      }
    }
    return PackWriter.create(directory, index)
  }

  private static create(directory: string, index: ObjectIndex): PackWriter {
    const name = `${randomHex(10)}.pack`
    const fd = openNew(directory, name)
    try {
      addon.flock(fd, LOCK_EXCLUSIVE_NOW)
      const header = packHeader()
      writeSync(fd, header)
      syncDirectory(directory)
      return new PackWriter(index.addPack(name), join(directory, name), fd, header.length)
    } catch (error) {
      closeSync(fd)
      unlinkSync(join(directory, name))
      throw error
    }
  }

  private static tryContinue(file: string, pack: number, index: ObjectIndex): PackWriter | undefined {
    let fd: number
    try {
      fd = openSync(file, 'r+')
    } catch {
      return undefined
    }
    if (addon.flock(fd, LOCK_EXCLUSIVE_NOW)) {
      // Asked again under the lock: the previous holder may have committed more in between.
      const committed = index.pack(pack)?.bytes
      const { size: actual, nlink } = fstatSync(fd)
      // The previous holder may have deleted it, too.
      if (committed !== undefined && actual >= committed && nlink > 0) {
        if (actual > committed) ftruncateSync(fd, committed)
        // Nothing committed: its maker died. It is used again, so that writers that die do not leave a file each.
        if (committed < PACK_HEADER_BYTES) writeSync(fd, packHeader(), 0, PACK_HEADER_BYTES, 0)
        return new PackWriter(pack, file, fd, Math.max(committed, PACK_HEADER_BYTES))
      }
    }
    closeSync(fd)
    return undefined
  }

  private get storeDirectory(): string {
    return dirname(dirname(this.file))
  }

  get isFull(): boolean {
    return this.end >= PACK_FULL_BYTES
  }

  /** Returns the offset of the block. Not durable before `sync`. */
  append(block: Uint8Array): number {
    const offset = this.end
    let done = 0
    try {
      while (done < block.length) done += writeSync(this.fd, block, done, block.length - done, offset + done)
    } catch (error) {
      // At once: over a quota of btrfs, SQLite cannot even touch the index of its log, and the process would die of that (SIGBUS).
      if (isNoRoom(error)) giveUpReserve(this.storeDirectory)
      throw error
    }
    this.end += block.length
    if (this.end - this.handedOver > WRITEBACK_BYTES) {
      addon.startWriteback(this.fd)
      this.handedOver = this.end
    }
    return offset
  }

  sync(): void {
    fdatasyncSync(this.fd)
  }

  /** For what is appended by now, in another thread. */
  syncBeside(): Promise<void> {
    return new Promise((resolve, reject) => fdatasync(this.fd, error => (error ? reject(error) : resolve())))
  }

  /**
   * What was appended but is not in the index (the capture failed) is cut off: it must not fill the disk. The index is
   * asked, because only it knows what was committed; when it does not answer, nothing is cut.
   */
  close(index: ObjectIndex): void {
    try {
      const committed = index.pack(this.pack)?.bytes
      const end = Math.max(committed ?? 0, PACK_HEADER_BYTES)
      // Asked of the file: a block that did not fit has left a part of itself behind what we count.
      if (committed !== undefined && fstatSync(this.fd).size > end) this.cutBack(end, committed === 0)
    } catch {
    } finally {
      closeSync(this.fd)
    }
  }

  /** Over a quota, btrfs refuses even that, and lets only whole files go. */
  private cutBack(end: number, isEmpty: boolean): void {
    try {
      ftruncateSync(this.fd, end)
    } catch (error) {
      if (!isNoRoom(error)) throw error
      // Still locked: nobody continues it.
      if (isEmpty) unlinkSync(this.file)
      else {
        giveUpReserve(this.storeDirectory)
        ftruncateSync(this.fd, end)
      }
    }
    // For whoever comes next: it was given up, so that this could be done.
    keepReserve(this.storeDirectory)
  }
}

function openNew(directory: string, name: string): number {
  try {
    return openSync(join(directory, name), 'wx', 0o600)
  } catch (cause) {
    if (errnoOf(cause) !== 'ENOENT') throw cause
    // Snapshots that were in it are gone: that must be said, not a new one begun.
    throw new SavepointError('store.damaged', `Cannot write to the store: ${directory} is missing`, {
      hint: 'Bring it back from a backup; or `savepoint verify --repair` makes it anew, and says which snapshots are lost',
      cause,
    })
  }
}
