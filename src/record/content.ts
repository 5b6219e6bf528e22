/** The content of one file, for a bundle: hashed, and read again piece by piece when it is too large to be held in memory. */
import { createHash, type Hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { GROUP_BYTES } from './parquet.ts'
import { openToRead } from './shut-file.ts'

const PIECE_BYTES = 1024 * 1024
/** One after another: memory of its own for each would pile up until somebody collects it. */
let shared: Buffer | undefined

/** It changes while it is read. */
export class Unstable extends Error {}

/** Closed by whoever opened it. */
export class Content {
  readonly size: number
  readonly sha256: string
  /** As git names it, when that was asked for. */
  readonly oid: string | undefined
  /** When it is small; valid until the next content is opened. */
  readonly bytes: Buffer | undefined
  private readonly fd: number

  /** `path`: `undefined` of what is empty. `gitAlgorithm`: of the repository that it may be in. `opensShut`: also
   * what is shut to its owner. Throws what the system says, or `Unstable`. */
  constructor(path: string | Buffer | undefined, gitAlgorithm?: 'sha1' | 'sha256', opensShut = false) {
    const open = (flags: number) => openSync(path!, flags)
    if (path === undefined) {
      this.fd = -1
      this.size = 0
      this.bytes = Buffer.alloc(0)
      this.sha256 = createHash('sha256').digest('hex')
      this.oid = gitAlgorithm && createHash(gitAlgorithm).update('blob 0\0').digest('hex')
      return
    }
    this.fd = opensShut ? openToRead(open) : open(constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const before = fstatSync(this.fd, { bigint: true })
      if (!before.isFile()) throw new Unstable('it is no file any more')
      this.size = Number(before.size)
      const hash = createHash('sha256')
      const gitHash = gitAlgorithm && createHash(gitAlgorithm).update(`blob ${this.size}\0`)
      if (this.size <= GROUP_BYTES) {
        shared ??= Buffer.allocUnsafeSlow(GROUP_BYTES)
        this.bytes = shared.subarray(0, this.size)
        this.fill(this.bytes, 0)
        hash.update(this.bytes)
        gitHash?.update(this.bytes)
      } else for (const piece of this.pieces(0, this.size, hash)) gitHash?.update(piece)
      const after = fstatSync(this.fd, { bigint: true })
      if (after.size !== before.size || after.mtimeNs !== before.mtimeNs)
        throw new Unstable('it changes while it is read')
      this.sha256 = hash.digest('hex')
      this.oid = gitHash?.digest('hex')
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** A piece is valid until the next one is asked for. */
  *pieces(offset: number, length: number, hash?: Hash): Generator<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length))
    for (let at = offset; at < offset + length; ) {
      const piece = buffer.subarray(0, Math.min(buffer.length, offset + length - at))
      this.fill(piece, at)
      hash?.update(piece)
      yield piece
      at += piece.length
    }
  }

  close(): void {
    if (this.fd >= 0) closeSync(this.fd)
  }

  private fill(bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(this.fd, bytes, done, bytes.length - done, position + done)
      if (got === 0) throw new Unstable('it became shorter while it was read')
      done += got
    }
  }
}
