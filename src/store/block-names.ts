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
  readonly of: readonly BlockNames[]
  /** By place in the list: the block, where its name begins there, and the object's offset in the unpacked block. */
  readonly blocks: Uint32Array
  readonly starts: Uint32Array
  readonly offsets: Uint32Array
  /** The places, as the first bytes of the ids order them; of a very long list one part after another. */
  readonly order: Uint32Array

  constructor(blocks: readonly BlockNames[]) {
    const count = blocks.reduce((sum, block) => sum + block.names.length / NAME_BYTES, 0)
    const keys = new Float64Array(count)
    this.of = blocks
    this.blocks = new Uint32Array(count)
    this.starts = new Uint32Array(count)
    this.offsets = new Uint32Array(count)
    let i = 0
    for (const [block, { names }] of blocks.entries()) {
      for (let at = 0, offset = 0; at < names.length; at += NAME_BYTES, i++) {
        this.blocks[i] = block
        this.starts[i] = at
        this.offsets[i] = offset
        keys[i] = names.readUInt32BE(at) * PLACES + (i % PLACES)
        offset += names.readUInt32LE(at + ID_BYTES + 1)
      }
    }
    this.order = orderOf(keys)
  }

  get length(): number {
    return this.order.length
  }
}

function orderOf(keys: Float64Array): Uint32Array {
  const order = new Uint32Array(keys.length)
  for (let start = 0; start < keys.length; start += PLACES) {
    const part = keys.subarray(start, start + PLACES).sort()
    for (let i = 0; i < part.length; i++) order[start + i] = start + (part[i]! % PLACES)
  }
  return order
}
