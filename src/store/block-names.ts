/** The names of many blocks as one list, in few arrays: an object per name would be most of the work. */
import { ID_BYTES } from '../model/id.ts'
import { NAME_BYTES } from './pack-format.ts'

/** A block in a pack and the names of its objects, as they lie in it. */
export interface BlockNames {
  pack: number
  block: number
  names: Buffer
}

/** Beside 32 bits of an id, so many places fit into the whole numbers of a double. */
const PLACES = 2 ** 20

export class NameList {
  /** By place in the list: the block, where its name begins there, and the object's offset in the unpacked block. */
  readonly blocks: Uint32Array
  readonly starts: Uint32Array
  readonly offsets: Uint32Array
  private readonly keys: Float64Array

  constructor(blocks: readonly BlockNames[]) {
    const count = blocks.reduce((sum, block) => sum + block.names.length / NAME_BYTES, 0)
    this.blocks = new Uint32Array(count)
    this.starts = new Uint32Array(count)
    this.offsets = new Uint32Array(count)
    this.keys = new Float64Array(count)
    let i = 0
    for (const [block, { names }] of blocks.entries()) {
      for (let at = 0, offset = 0; at < names.length; at += NAME_BYTES, i++) {
        this.blocks[i] = block
        this.starts[i] = at
        this.offsets[i] = offset
        this.keys[i] = names.readUInt32BE(at) * PLACES + (i % PLACES)
        offset += names.readUInt32LE(at + ID_BYTES + 1)
      }
    }
  }

  /** The places, as the first bytes of the ids order them; of a very long list one part after another. */
  *inOrderOfIds(): Generator<number> {
    for (let start = 0; start < this.keys.length; start += PLACES) {
      for (const key of this.keys.slice(start, start + PLACES).sort()) yield start + (key % PLACES)
    }
  }
}
