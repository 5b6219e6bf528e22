/**
 * Paths of a recording that were only looked at and are as they were: most of a large `find`. They go into the manifest in their order among
 * the others, without an object for each.
 */
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { FIELD, Frame } from '../tracers/frames.ts'
import { SETTLED, type SettledPaths } from '../tracers/record-log.ts'

const TEXT_BYTES = 256 * 1024
const LENGTH_BYTES = 4

export class SettledLooks {
  readonly count: number
  private readonly paths: SettledPaths
  private readonly text: Buffer
  private done = 0

  constructor(paths: SettledPaths) {
    this.paths = paths
    this.count = paths.index.length / SETTLED.size
    this.text = Buffer.allocUnsafeSlow(this.count === 0 ? 0 : TEXT_BYTES)
  }

  /** Gives the text of those before a path that were not given yet; undefined: of all. A piece is valid until the next one. */
  writeBefore(path: Raw | undefined, write: (text: Buffer, files: number) => void): void {
    const { bytes, index } = this.paths
    const to = path === undefined ? this.count : this.countBefore(rawToBytes(path))
    while (this.done < to) {
      const piece = addon.looksText(bytes, index, this.done, to, this.text)
      if (piece.done === 0) throw new Error('a path of the log is too long for the manifest')
      this.done += piece.done
      write(this.text.subarray(0, piece.bytes), piece.done)
    }
  }

  /** Paths are asked for in their order: the next is near, or a few steps away that grow. */
  private countBefore(path: Buffer): number {
    let low = this.done
    let step = 1
    while (low + step <= this.count && Buffer.compare(this.pathOf(low + step - 1), path) < 0) {
      low += step
      step *= 2
    }
    let high = Math.min(low + step - 1, this.count)
    while (low < high) {
      const middle = (low + high) >> 1
      if (Buffer.compare(this.pathOf(middle), path) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  private pathOf(i: number): Buffer {
    const { bytes, index } = this.paths
    const at = index.readUInt32LE(i * SETTLED.size + SETTLED.offset) + LENGTH_BYTES
    const frame = new Frame(bytes.subarray(at, at + bytes.readUInt32LE(at - LENGTH_BYTES)))
    return frame.view(FIELD.path)
  }
}
