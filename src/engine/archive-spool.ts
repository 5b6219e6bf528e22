/**
 * A private file in home/tmp in which large entries of an archive lie while they are chunked or cloned: one per import,
 * used again for each entry, so that leftovers of a killed process are at most one file. It is locked as long as its
 * import lives; unlocked ones are removed by the next import.
 */

import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../model/entry.ts'
import { randomHex } from '../model/id.ts'
import { addon } from '../native/addon.ts'
import { OBJECT } from '../store/pack-format.ts'
import type { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { readHere } from '../targets/dir/chunk-reader.ts'
import { type CloneSource, createCloneSource } from '../targets/dir/clone-source.ts'
import { captureLargeFile } from '../targets/dir/large-file.ts'
import type { Segment } from './archive-sparse.ts'

const PREFIX = 'import-'
/** Of zeros that become a hole: at least what filesystems have as a block. */
const HOLE_BYTES = 64 * 1024
const zeros = Buffer.alloc(HOLE_BYTES)
const LOCK = { exclusive: 2, nonBlocking: 4 } as const

export class Spool {
  private readonly directory: string
  private readonly writer: StoreWriter
  private readonly clones: CloneSource
  private readonly write: typeof writePiece
  private file: { name: string; fd: number } | undefined

  /** `findsHoles`: long zeros become holes, where nothing says which were. */
  constructor(home: string, store: Store, writer: StoreWriter, findsHoles = false) {
    this.directory = join(home, 'tmp')
    this.writer = writer
    this.write = findsHoles ? writeButZeros : writePiece
    this.clones = createCloneSource(join(store.directory, 'clones'))
    removeStale(this.directory)
  }

  /** Stores a content of `size` bytes: data for `segments` comes from `read`, in order; the rest are holes. */
  async store(size: number, segments: readonly Segment[], read: (most: number) => Promise<Buffer>): Promise<Id> {
    this.file ??= this.create()
    const { fd, name } = this.file
    // To nothing first: what the entry before left behind would show in the holes.
    ftruncateSync(fd, 0)
    ftruncateSync(fd, size)
    for (const { offset, length } of segments) {
      for (let at = offset; at < offset + length; ) at += this.write(fd, await read(offset + length - at), at)
    }
    const root = addon.openRoot(Buffer.from(this.directory))
    try {
      const { content } = await captureLargeFile(root, name, {
        ...readHere({
          claim: id => this.writer.claim(id),
          store: (id, bytes) => this.writer.putClaimed(id, OBJECT.data, bytes),
        }),
        storeRecipe: (id, bytes) => this.writer.putAs(id, OBJECT.recipe, bytes),
        clonePaths: this.clones.paths,
        storeClone: (id, bytes) => this.writer.addClone(id, bytes),
      })
      if (content === '') throw new Error('the working file of an import was changed by somebody else')
      return content
    } finally {
      addon.close(root)
    }
  }

  close(): void {
    if (!this.file) return
    unlinkSync(join(this.directory, this.file.name))
    closeSync(this.file.fd)
    this.file = undefined
  }

  private create(): { name: string; fd: number } {
    mkdirSync(this.directory, { recursive: true, mode: 0o700 })
    for (;;) {
      const name = `${PREFIX}${randomHex(8)}`
      const fd = openSync(join(this.directory, name), 'wx+', 0o600)
      // Another import may have taken it for a leftover before it was locked.
      if (addon.flock(fd, LOCK.exclusive | LOCK.nonBlocking) && addon.statFd(fd).nlink > 0) return { name, fd }
      closeSync(fd)
    }
  }
}

function writePiece(fd: number, piece: Buffer, position: number): number {
  for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done, piece.length - done, position + done)
  return piece.length
}

/** Into a file that is a hole there. */
function writeButZeros(fd: number, piece: Buffer, position: number): number {
  for (let done = 0; done < piece.length; ) {
    const part = piece.subarray(done, done + HOLE_BYTES - ((position + done) % HOLE_BYTES))
    if (!part.equals(zeros.subarray(0, part.length))) writePiece(fd, part, position + done)
    done += part.length
  }
  return piece.length
}

function removeStale(directory: string): void {
  for (const name of listNames(directory)) {
    if (!name.startsWith(PREFIX)) continue
    try {
      const file = join(directory, name)
      const fd = openSync(file, 'r+')
      try {
        if (addon.flock(fd, LOCK.exclusive | LOCK.nonBlocking)) unlinkSync(file)
      } finally {
        closeSync(fd)
      }
    } catch {
      // It has just gone, or it is not ours to remove.
    }
  }
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
