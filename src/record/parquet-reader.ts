/**
 * Reads the `blobs.parquet` of a bundle, which is not trusted: every length is checked against the file before memory is taken for
 * it. Understands what we write (plain, required columns, Snappy or none), and says so of anything else.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { addon } from '../native/addon.ts'
import { BadBundle } from './bad-bundle.ts'
import {
  CODEC,
  COLUMN,
  DATA_PAGE,
  ENCODING,
  FILE,
  MAGIC,
  META,
  PAGE,
  PAGE_HEADER,
  PARQUET_TYPE,
  REPETITION,
  ROW_GROUP,
  SCHEMA,
} from './parquet.ts'
import { BadThrift, decodeStruct, type ThriftStruct, type ThriftValue } from './thrift.ts'

/** Larger pages are never held in memory: they have one row, which is expanded into a file. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024
const MAX_FOOTER_BYTES = 64 * 1024 * 1024
const MAX_HEADER_BYTES = 64 * 1024
const LENGTH_BYTES = 4

interface Page {
  /** Of its body, in the file. */
  offset: number
  compressed: number
  uncompressed: number
  values: number
  codec: number
}

export interface BlobPlace {
  group: number
  row: number
}

const damaged = (why: string) => new BadBundle(`blobs.parquet ${why}`)

export class ParquetReader {
  private readonly fd: number
  private readonly size: number
  private readonly groups: { key: Page; content: Page }[]
  /** In the order of the file. */
  readonly keys = new Map<string, BlobPlace>()
  /** Used again for each page. */
  private plain: Buffer = Buffer.alloc(0)
  private cached: { group: number; values: Buffer[] } | undefined

  constructor(file: string) {
    // Without O_NONBLOCK a FIFO of that name would hang us.
    this.fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stat = fstatSync(this.fd)
      if (!stat.isFile()) throw damaged('is no file')
      this.size = stat.size
      this.groups = this.readFooter()
      this.readKeys()
    } catch (error) {
      closeSync(this.fd)
      throw error instanceof BadThrift ? damaged(`makes no sense: ${error.message}`) : error
    }
  }

  close(): void {
    closeSync(this.fd)
  }

  /** Whether it has to be expanded into a file. */
  isLarge({ group }: BlobPlace): boolean {
    return this.groups[group]!.content.uncompressed > MAX_PAGE_BYTES
  }

  sizeOfLarge({ group }: BlobPlace): number {
    return this.groups[group]!.content.uncompressed - LENGTH_BYTES
  }

  /** Valid until the next call. */
  read({ group, row }: BlobPlace): Buffer {
    if (this.cached?.group !== group) this.cached = undefined
    this.cached ??= { group, values: this.valuesOf(this.groups[group]!.content) }
    return this.cached.values[row]!
  }

  /** Writes a large one into a file, behind the four bytes of its length. */
  expand({ group }: BlobPlace, to: number): void {
    const { offset, compressed, uncompressed, codec } = this.groups[group]!.content
    if (codec !== CODEC.snappy) throw damaged('has a large page that is not compressed')
    const prefix = this.prefixLength(offset, uncompressed)
    try {
      addon.snappyExpand(this.fd, offset + prefix, compressed - prefix, to, uncompressed)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EBADMSG') throw damaged('is damaged: a page cannot be expanded')
      throw error
    }
  }

  private readFooter(): { key: Page; content: Page }[] {
    const ends = 2 * MAGIC.length + LENGTH_BYTES
    if (this.size < ends || !this.bytes(0, MAGIC.length).equals(MAGIC)) throw damaged('is no Parquet file')
    const tail = this.bytes(this.size - MAGIC.length - LENGTH_BYTES, MAGIC.length + LENGTH_BYTES)
    if (!tail.subarray(LENGTH_BYTES).equals(MAGIC)) throw damaged('is cut off')
    const length = tail.readUInt32LE(0)
    if (length > this.size - ends || length > MAX_FOOTER_BYTES) throw damaged('has a footer that does not fit into it')
    const { value } = decodeStruct(this.bytes(this.size - MAGIC.length - LENGTH_BYTES - length, length))
    const columns = structs(value, FILE.schema).slice(1)
    const names = columns.map(column => textOf(column.get(SCHEMA.name)))
    if (names.join() !== 'key,content') throw damaged(`has the columns ${names.join(', ')}, not key and content`)
    const isPlain = (column: ThriftStruct) =>
      column.get(SCHEMA.type) === PARQUET_TYPE.byteArray && column.get(SCHEMA.repetition) === REPETITION.required
    if (!columns.every(isPlain)) throw damaged('has columns that are no required byte arrays')
    return structs(value, FILE.rowGroups).map(group => this.groupOf(group))
  }

  private groupOf(group: ThriftStruct): { key: Page; content: Page } {
    const chunks = structs(group, ROW_GROUP.columns)
    if (chunks.length !== 2) throw damaged('has a row group without its two columns')
    const [key, content] = chunks.map(chunk => this.pageOf(struct(chunk.get(COLUMN.meta))))
    if (key!.values !== content!.values || key!.values !== count(group, ROW_GROUP.rows))
      throw damaged('has columns of different length')
    return { key: key!, content: content! }
  }

  private pageOf(meta: ThriftStruct): Page {
    const at = count(meta, META.dataPage)
    const codec = count(meta, META.codec)
    if (codec !== CODEC.snappy && codec !== CODEC.uncompressed)
      throw damaged('is compressed in a way that is not known here')
    if (at >= this.size) throw damaged('has a page outside of the file')
    const { value, end } = decodeStruct(this.bytes(at, Math.min(MAX_HEADER_BYTES, this.size - at)))
    const data = struct(value.get(PAGE_HEADER.dataPage))
    const page: Page = {
      offset: at + end,
      compressed: count(value, PAGE_HEADER.compressed),
      uncompressed: count(value, PAGE_HEADER.uncompressed),
      values: count(data, DATA_PAGE.values),
      codec,
    }
    const isKnown = value.get(PAGE_HEADER.type) === PAGE.data && data.get(DATA_PAGE.encoding) === ENCODING.plain
    if (!isKnown) throw damaged('has a page in an encoding that is not known here')
    if (page.compressed > this.size - page.offset) throw damaged('has a page that is cut off')
    if (page.values !== count(meta, META.values)) throw damaged('has a column of several pages')
    if (page.values * LENGTH_BYTES > page.uncompressed) throw damaged('has a page that cannot hold its values')
    if (page.uncompressed > MAX_PAGE_BYTES && page.values !== 1) throw damaged('has a page that is too large')
    return page
  }

  private readKeys(): void {
    this.groups.forEach(({ key }, group) => {
      if (key.uncompressed > MAX_PAGE_BYTES) throw damaged('has a key that is too large')
      this.valuesOf(key).forEach((bytes, row) => {
        const name = bytes.toString()
        if (this.keys.has(name)) throw damaged(`has the key ${name} twice`)
        this.keys.set(name, { group, row })
      })
    })
  }

  private valuesOf(page: Page): Buffer[] {
    const plain = this.plainOf(page)
    const values: Buffer[] = []
    for (let at = 0; values.length < page.values; ) {
      const length = at + LENGTH_BYTES <= plain.length ? plain.readUInt32LE(at) : Number.POSITIVE_INFINITY
      at += LENGTH_BYTES
      if (length > plain.length - at) throw damaged('is damaged: a value ends outside of its page')
      values.push(plain.subarray(at, at + length))
      at += length
    }
    return values
  }

  private plainOf({ offset, compressed, uncompressed, codec }: Page): Buffer {
    if (codec === CODEC.uncompressed) {
      if (compressed !== uncompressed) throw damaged('is damaged: a page has two lengths')
      return this.bytes(offset, compressed)
    }
    // No element says more than 64 bytes with fewer than 3 of its own: no memory for what cannot be.
    if (uncompressed > compressed * 22 + 64) throw damaged('is damaged: a page cannot be expanded')
    const body = this.bytes(offset, compressed)
    if (this.plain.length < uncompressed) this.plain = Buffer.allocUnsafeSlow(uncompressed)
    const plain = this.plain.subarray(0, uncompressed)
    try {
      addon.snappyUncompress(body.subarray(this.prefixLength(offset, uncompressed)), plain)
      return plain
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EBADMSG') throw damaged('is damaged: a page cannot be expanded')
      throw error
    }
  }

  /** The stream begins with its length; returns how many bytes that takes. */
  private prefixLength(offset: number, expected: number): number {
    const bytes = this.bytes(offset, Math.min(5, this.size - offset))
    let length = 0
    for (let i = 0; i < bytes.length; i++) {
      length += (bytes[i]! & 0x7f) * 2 ** (7 * i)
      if (bytes[i]! < 0x80) {
        if (length !== expected) break
        return i + 1
      }
    }
    throw damaged('is damaged: a page does not say its length')
  }

  private bytes(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    for (let done = 0; done < length; ) {
      const got = readSync(this.fd, bytes, done, length - done, offset + done)
      if (got === 0) throw damaged('is cut off')
      done += got
    }
    return bytes
  }
}

function struct(value: ThriftValue | undefined): ThriftStruct {
  if (value instanceof Map) return value
  throw damaged('makes no sense: something is missing in it')
}

function structs(from: ThriftStruct, id: number): ThriftStruct[] {
  const list = from.get(id)
  if (!Array.isArray(list)) throw damaged('makes no sense: something is missing in it')
  return list.map(struct)
}

const textOf = (value: ThriftValue | undefined): string => (Buffer.isBuffer(value) ? value.toString() : '')

function count(from: ThriftStruct, id: number): number {
  const value = from.get(id)
  if (typeof value === 'number' && value >= 0) return value
  throw damaged('makes no sense: a number is missing in it')
}
