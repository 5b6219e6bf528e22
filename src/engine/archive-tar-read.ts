/**
 * Reads tar archives of any maker: ustar, PAX, GNU (long names, sparse files) and the old format. Strict, because they
 * come from anywhere: what is odd is refused. Names are raw bytes, as they stand in the archive; whether they are safe
 * is decided by ArchiveTree.
 */
import type { Raw } from '../model/raw-path.ts'
import type { ArchiveBytes } from './archive-bytes.ts'
import { decodePax, decodePaxTime, encodeXattrs, type PaxRecord } from './archive-pax.ts'
import { dataBytes, readOldSparseMap, readSparseMap, type Segment } from './archive-sparse.ts'
import { decodeTarHeader, isZero, mayBeTar, TAR_BLOCK_BYTES, type TarHeader } from './archive-tar-header.ts'
import { decodeUnknown, type UnknownName } from './archive-unknown.ts'
import { type ImportLimits, truncatedArchive, unsafeArchive } from './archive-unsafe.ts'

export type TarKind = 'file' | 'hard-link' | 'link' | 'char' | 'block' | 'dir' | 'fifo'

export interface TarEntry {
  kind: TarKind
  path: Raw
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
  /** Of a link of either sort. */
  target: Raw
  devMajor: number
  devMinor: number
  /** Of a file, holes included. */
  size: number
  /** Where in the file the data goes that `readData` gives, in order. */
  segments: Segment[]
  isSparse: boolean
  xattrs: Buffer | undefined
  /** Of a directory in an archive of ours. */
  unknown: UnknownName[]
}

const kindOfFlag: Record<string, TarKind> = {
  '\0': 'file',
  '0': 'file',
  '1': 'hard-link',
  '2': 'link',
  '3': 'char',
  '4': 'block',
  '5': 'dir',
  '6': 'fifo',
  '7': 'file',
  S: 'file',
}
const NS = 1_000_000_000n
/** What one header would say of all entries: nobody writes it. */
const neverGlobal = new Set(['path', 'linkpath', 'size'])

/** They are looked at for every entry. */
const MAX_GLOBAL_RECORDS = 100

/** What extended headers said about the entry that follows them. */
interface Extended {
  records: PaxRecord[]
  name?: Raw
  linkname?: Raw
}

export class TarReader {
  private readonly bytes: ArchiveBytes
  private readonly limits: ImportLimits
  private global: PaxRecord[] = []
  /** Data of the current entry that was not read yet, and the padding after it. */
  private rest = 0
  private padding = 0
  private hasBegun = false

  constructor(bytes: ArchiveBytes, limits: ImportLimits) {
    this.bytes = bytes
    this.limits = limits
  }

  /** The next entry, or undefined at the end, after which there is nothing but zeros. */
  async next(): Promise<TarEntry | undefined> {
    if (this.rest > 0) throw new Error('the data of an entry was not read')
    await this.bytes.read(this.padding)
    const extended: Extended = { records: [] }
    for (let isFirst = true; ; isFirst = false) {
      const block = await this.bytes.read(TAR_BLOCK_BYTES)
      if (!this.hasBegun && !mayBeTar(block)) throw unsafeArchive('is compressed, but holds no tar archive')
      this.hasBegun = true
      const header = decodeTarHeader(block)
      if (!header) {
        if (!isFirst) throw unsafeArchive('is damaged: an extended header is followed by nothing')
        return this.finish()
      }
      if (!(await this.readExtended(header, extended))) return this.readEntry(block, header, extended)
    }
  }

  /** Up to `most` bytes of the current entry's data. */
  async readData(most: number): Promise<Buffer> {
    const piece = await this.bytes.some(Math.min(most, this.rest))
    if (piece.length === 0) throw truncatedArchive()
    this.rest -= piece.length
    return piece
  }

  private async finish(): Promise<undefined> {
    if (!isZero(await this.bytes.read(TAR_BLOCK_BYTES)))
      throw unsafeArchive('is damaged: an empty block is followed by data')
    for (;;) {
      const piece = await this.bytes.some(Number.POSITIVE_INFINITY)
      if (piece.length === 0) return undefined
      if (!isZero(piece)) throw unsafeArchive('has data after its end')
    }
  }

  /** Takes in a header that describes others; false when this is an entry. */
  private async readExtended(header: TarHeader, extended: Extended): Promise<boolean> {
    if (!'xgLK'.includes(header.type) || header.type === '') return false
    if (header.size < 0 || header.size > this.limits.headerBytes)
      throw unsafeArchive('has a header of an impossible size')
    const body = await this.bytes.read(header.size)
    await this.bytes.read(-header.size & (TAR_BLOCK_BYTES - 1))
    if (header.type === 'L') extended.name = longName(body)
    else if (header.type === 'K') extended.linkname = longName(body)
    else if (header.type === 'x') extended.records = [...extended.records, ...decodePax(body)]
    else {
      this.global = [...this.global, ...decodePax(body)].filter(([key]) => key !== 'comment')
      const wrong = this.global.find(([key]) => neverGlobal.has(key) || key.startsWith('GNU.sparse.'))
      if (wrong) throw unsafeArchive(`says ${wrong[0]} for all its entries`)
      if (this.global.length > MAX_GLOBAL_RECORDS) throw unsafeArchive('has too many global records')
    }
    return true
  }

  private async readEntry(block: Buffer, header: TarHeader, extended: Extended): Promise<TarEntry> {
    const records = new Map([...this.global, ...extended.records])
    // An empty value takes a record back.
    for (const [key, value] of records) if (value === '' && !key.startsWith('SCHILY.xattr.')) records.delete(key)
    const path = records.get('GNU.sparse.name') ?? records.get('path') ?? extended.name ?? header.name
    const entry: TarEntry = {
      kind: kindOf(header, path),
      path,
      mode: header.mode & 0o7777,
      uid: numberOf(records, 'uid', path) ?? header.uid,
      gid: numberOf(records, 'gid', path) ?? header.gid,
      mtimeNs: mtimeOf(records, header),
      target: records.get('linkpath') ?? extended.linkname ?? header.linkname,
      devMajor: header.devMajor,
      devMinor: header.devMinor,
      size: numberOf(records, 'size', path) ?? header.size,
      segments: [],
      isSparse: false,
      xattrs: encodeXattrs(records),
      unknown: extended.records.flatMap(([key, value]) => (key === 'comment' ? (decodeUnknown(value) ?? []) : [])),
    }
    if (entry.size < 0) throw unsafeArchive('has an impossible size', path)
    this.rest = entry.size
    this.padding = -entry.size & (TAR_BLOCK_BYTES - 1)
    if (entry.kind === 'file') await this.readSegments(entry, block, header, records)
    else if (entry.size > 0) throw unsafeArchive('is no regular file but has content', path)
    return entry
  }

  private async readSegments(entry: TarEntry, block: Buffer, header: TarHeader, records: Map<Raw, Raw>): Promise<void> {
    const { path } = entry
    if (header.type === 'S') {
      // Blocks of this map are not counted as data.
      const map = await readOldSparseMap(block, () => this.bytes.read(TAR_BLOCK_BYTES), this.limits)
      Object.assign(entry, map, { isSparse: true })
    } else if (records.get('GNU.sparse.major') === '1' && records.get('GNU.sparse.minor') === '0') {
      const size = numberOf(records, 'GNU.sparse.realsize', path)
      if (size === undefined) throw unsafeArchive('is a sparse file without a size', path)
      const readBlock = async () => {
        if (this.rest < TAR_BLOCK_BYTES) throw unsafeArchive('has a malformed map of a sparse file', path)
        this.rest -= TAR_BLOCK_BYTES
        return this.bytes.read(TAR_BLOCK_BYTES)
      }
      const segments = await readSparseMap(readBlock, size, this.limits)
      Object.assign(entry, { segments, size, isSparse: true })
    } else if ([...records.keys()].some(key => key.startsWith('GNU.sparse.'))) {
      throw unsafeArchive(
        'is a sparse file in a format that is not supported (make the archive with tar --format=gnu or without -S)',
        path,
      )
    } else if (entry.size > 0) entry.segments = [{ offset: 0, length: entry.size }]
    if (dataBytes(entry.segments) !== this.rest) throw unsafeArchive('has a map that does not fit its data', path)
  }
}

function kindOf(header: TarHeader, path: Raw): TarKind {
  const kind = Object.hasOwn(kindOfFlag, header.type) ? kindOfFlag[header.type] : undefined
  if (!kind) throw unsafeArchive(`is of an unknown type (${JSON.stringify(header.type)})`, path)
  // The oldest format has no type for directories.
  return kind === 'file' && header.type !== 'S' && path.endsWith('/') ? 'dir' : kind
}

function longName(body: Buffer): Raw {
  const nul = body.indexOf(0)
  if (nul >= 0 && !isZero(body.subarray(nul))) throw unsafeArchive('has a name with a zero byte in it')
  return body.toString('latin1', 0, nul < 0 ? body.length : nul)
}

function numberOf(records: Map<Raw, Raw>, key: Raw, path: Raw): number | undefined {
  const value = records.get(key)
  if (value === undefined) return undefined
  if (!/^\d{1,16}$/.test(value) || !Number.isSafeInteger(Number(value)))
    throw unsafeArchive(`has an impossible ${key}`, path)
  return Number(value)
}

function mtimeOf(records: Map<Raw, Raw>, header: TarHeader): bigint {
  const value = records.get('mtime')
  if (value !== undefined) return decodePaxTime(value)
  const timeNs = BigInt(header.mtimeSeconds) * NS
  if (BigInt.asIntN(64, timeNs) !== timeNs) throw unsafeArchive('has a time that no file can have')
  return timeNs
}
