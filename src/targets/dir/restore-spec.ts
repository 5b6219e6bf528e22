/** The specification that native `writeFiles` takes: one packed record per file. */
import type { Entry } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { ByteWriter } from '../../store/byte-writer.ts'

const SPARSE = 1

export interface FileSpec {
  path: Raw
  entry: Entry
  /** Where its content lies in the data that goes with the specification. */
  offset: number
  xattrOffset: number
}

export function encodeSpecs(specs: readonly FileSpec[]): Buffer {
  const out = new ByteWriter(specs.length * 96)
  for (const { path, entry, offset, xattrOffset } of specs) {
    out.u16(path.length)
    out.u16(entry.sparse ? SPARSE : 0)
    out.u32(entry.mode)
    out.u32(entry.uid)
    out.u32(entry.gid)
    out.i64(entry.mtimeNs)
    out.u32(offset)
    out.u32(entry.size)
    out.u32(xattrOffset)
    out.u32(entry.xattrs?.length ?? 0)
    out.raw(path)
  }
  return out.finish()
}
