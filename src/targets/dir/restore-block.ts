/** Writes the files whose content lies in one block of a pack. */
import { hashBytes, ID_BYTES } from '../../model/id.ts'
import { addon } from '../../native/addon.ts'
import { decompressBlock } from '../../store/compress.ts'
import { blockPayload, decodeBlockHeader, isIntactBlock } from '../../store/pack-format.ts'
import { wrongContent } from '../../store/recipe.ts'

/** The files of one block, encoded so that they cross to a worker cheaply. */
export interface BlockFiles {
  /** As native `writeFiles` takes it. */
  spec: Uint8Array
  /** 32 characters per file. */
  ids: string
  /** Offset and length per file in the unpacked block. */
  ranges: Uint32Array
  /** Lie behind the unpacked block in the data. */
  xattrs: Uint8Array
}

/** Checks every content against its id before the first file is written. Returns META per file. */
export function writeBlockFiles(root: number, block: Buffer, files: BlockFiles): Buffer {
  const header = decodeBlockHeader(block)
  if (!header || header.totalBytes !== block.length || !isIntactBlock(block)) throw wrongContent()
  const raw = decompressBlock(blockPayload(block, header), header.codec, header.rawBytes)
  const { ids, ranges, spec, xattrs } = files
  for (let i = 0; i < ranges.length / 2; i++) {
    const content = raw.subarray(ranges[2 * i]!, ranges[2 * i]! + ranges[2 * i + 1]!)
    if (hashBytes(content) !== ids.slice(i * ID_BYTES, (i + 1) * ID_BYTES)) throw wrongContent()
  }
  const data = xattrs.length === 0 ? raw : Buffer.concat([raw, xattrs])
  return addon.writeFiles(root, Buffer.from(spec.buffer, spec.byteOffset, spec.byteLength), data)
}
