/** Extended attributes as the addon takes and gives them. */
import { expect } from 'vitest'

export type Xattrs = Record<string, Buffer>

export function encodeXattrs(xattrs: Xattrs): Buffer {
  return Buffer.concat(
    Object.entries(xattrs).flatMap(([name, value]) => {
      const lengths = [Buffer.alloc(2), Buffer.alloc(4)] as const
      lengths[0].writeUInt16LE(name.length)
      lengths[1].writeUInt32LE(value.length)
      return [lengths[0], Buffer.from(name), lengths[1], value]
    }),
  )
}

/** Without the labels that a security module may put on everything. */
export function decodeXattrs(encoded: Buffer): Xattrs {
  const xattrs: Xattrs = {}
  let previous = ''
  for (let at = 0; at < encoded.length; ) {
    const name = encoded.toString('latin1', at + 2, at + 2 + encoded.readUInt16LE(at))
    at += 2 + name.length
    const value = Buffer.from(encoded.subarray(at + 4, at + 4 + encoded.readUInt32LE(at)))
    at += 4 + value.length
    expect(name > previous).toBe(true)
    previous = name
    if (!name.startsWith('security.')) xattrs[name] = value
  }
  return xattrs
}
