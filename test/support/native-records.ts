/** What the addon answers in bytes, and what it is asked in bytes, as objects. */
import { expect } from 'vitest'
import { addon, META, RECORD, SCAN_HEADER } from '../../src/native/addon.ts'
import { list, root } from './native-scratch.ts'
import { decodeXattrs } from './native-xattrs.ts'

interface Entry {
  name: Buffer
  mode: number
  nlink: number
  uid: number
  gid: number
  size: bigint
  mtimeNs: bigint
  ctimeNs: bigint
  ino: bigint
  rdevMajor: number
  rdevMinor: number
  flags: number
}

export function parseScan(result: Buffer): { errno: number; entries: Entry[] }[] {
  const directories = []
  for (let at = 0; at < result.length; ) {
    const bytes = result.readUInt32LE(at + SCAN_HEADER.bytes)
    const count = result.readUInt32LE(at + SCAN_HEADER.count)
    const errno = result.readInt32LE(at + SCAN_HEADER.errno)
    at += SCAN_HEADER.size
    const end = at + bytes
    const entries: Entry[] = []
    for (; at < end; at += RECORD.name + result.readUInt16LE(at + RECORD.nameLength)) {
      entries.push({
        name: Buffer.from(result.subarray(at + RECORD.name, at + RECORD.name + result.readUInt16LE(at))),
        mode: result.readUInt16LE(at + RECORD.mode),
        nlink: result.readUInt32LE(at + RECORD.nlink),
        uid: result.readUInt32LE(at + RECORD.uid),
        gid: result.readUInt32LE(at + RECORD.gid),
        size: result.readBigUInt64LE(at + RECORD.size),
        mtimeNs: result.readBigInt64LE(at + RECORD.mtimeNs),
        ctimeNs: result.readBigInt64LE(at + RECORD.ctimeNs),
        ino: result.readBigUInt64LE(at + RECORD.ino),
        rdevMajor: result.readUInt32LE(at + RECORD.rdevMajor),
        rdevMinor: result.readUInt32LE(at + RECORD.rdevMinor),
        flags: result.readUInt8(at + RECORD.flags),
      })
    }
    expect(at).toBe(end)
    expect(entries).toHaveLength(count)
    directories.push({ errno, entries })
  }
  return directories
}

export const scan = async (...paths: (string | Buffer)[]) => parseScan(await addon.scanDirs(root, list(...paths)))

export function parseMeta(meta: Buffer, index: number) {
  const at = index * META.size_
  return {
    errno: meta.readInt32LE(at + META.errno),
    flags: meta.readUInt32LE(at + META.flags),
    mode: meta.readUInt32LE(at + META.mode),
    nlink: meta.readUInt32LE(at + META.nlink),
    uid: meta.readUInt32LE(at + META.uid),
    gid: meta.readUInt32LE(at + META.gid),
    size: meta.readBigUInt64LE(at + META.size),
    mtimeNs: meta.readBigInt64LE(at + META.mtimeNs),
    ctimeNs: meta.readBigInt64LE(at + META.ctimeNs),
    ino: meta.readBigUInt64LE(at + META.ino),
    contentOffset: meta.readUInt32LE(at + META.contentOffset),
    contentLength: meta.readUInt32LE(at + META.contentLength),
    xattrOffset: meta.readUInt32LE(at + META.xattrOffset),
    xattrLength: meta.readUInt32LE(at + META.xattrLength),
    rdevMajor: meta.readUInt32LE(at + META.rdevMajor),
    rdevMinor: meta.readUInt32LE(at + META.rdevMinor),
    btimeNs: meta.readBigInt64LE(at + META.btimeNs),
    dev: meta.readBigUInt64LE(at + META.dev),
  }
}

interface ReadOptions {
  outBytes?: number
  maxContent?: number
  retries?: number
  from?: number
}

export function read(
  paths: (string | Buffer)[],
  { outBytes = 1 << 20, maxContent = 1 << 20, retries = 3, from = root }: ReadOptions = {},
) {
  const out = Buffer.alloc(outBytes, 0xee)
  const { done, meta } = addon.readEntries(from, list(...paths), out, maxContent, retries)
  expect(meta).toHaveLength(done * META.size_)
  return Array.from({ length: done }, (_, i) => {
    const result = parseMeta(meta, i)
    return {
      ...result,
      content: Buffer.from(out.subarray(result.contentOffset, result.contentOffset + result.contentLength)),
      xattrs: decodeXattrs(out.subarray(result.xattrOffset, result.xattrOffset + result.xattrLength)),
    }
  })
}

interface FileSpec {
  path: string | Buffer
  content?: Buffer
  mode?: number
  uid?: number
  gid?: number
  mtimeNs?: bigint
  xattrs?: Buffer
  sparse?: boolean
}

export function encodeSpecs(files: FileSpec[]): { spec: Buffer; data: Buffer } {
  const specs: Buffer[] = []
  const data: Buffer[] = []
  let offset = 0
  for (const file of files) {
    const path = Buffer.from(file.path)
    const content = file.content ?? Buffer.alloc(0)
    const xattrs = file.xattrs ?? Buffer.alloc(0)
    const fixed = Buffer.alloc(40)
    fixed.writeUInt16LE(path.length, 0)
    fixed.writeUInt16LE(file.sparse ? 1 : 0, 2)
    fixed.writeUInt32LE(file.mode ?? 0o644, 4)
    fixed.writeUInt32LE(file.uid ?? process.getuid!(), 8)
    fixed.writeUInt32LE(file.gid ?? process.getgid!(), 12)
    fixed.writeBigInt64LE(file.mtimeNs ?? 1_700_000_000_123_456_789n, 16)
    fixed.writeUInt32LE(offset, 24)
    fixed.writeUInt32LE(content.length, 28)
    fixed.writeUInt32LE(offset + content.length, 32)
    fixed.writeUInt32LE(xattrs.length, 36)
    offset += content.length + xattrs.length
    specs.push(fixed, path)
    data.push(content, xattrs)
  }
  return { spec: Buffer.concat(specs), data: Buffer.concat(data) }
}

export function write(files: FileSpec[], using = addon) {
  const { spec, data } = encodeSpecs(files)
  const meta = using.writeFiles(root, spec, data)
  expect(meta).toHaveLength(files.length * META.size_)
  return files.map((_, i) => parseMeta(meta, i))
}
