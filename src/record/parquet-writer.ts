/**
 * Writes `blobs.parquet`: two required columns, `key` (text) and `content` (bytes), plain, compressed with Snappy, in row groups of
 * bounded size. What was written before a failure is a whole file once `finish` has been called.
 */
import { ftruncateSync, writeSync } from 'node:fs'
import { addon } from '../native/addon.ts'
import {
  CODEC,
  COLUMN,
  CONVERTED,
  DATA_PAGE,
  ENCODING,
  FILE,
  GROUP_BYTES,
  GROUP_ROWS,
  MAGIC,
  META,
  PAGE,
  PAGE_HEADER,
  PARQUET_TYPE,
  REPETITION,
  ROW_GROUP,
  SCHEMA,
} from './parquet.ts'
import { encodeStruct, varint, type Written } from './thrift.ts'

interface Column {
  offset: number
  values: number
  uncompressed: number
  compressed: number
}

const i32 = (value: number): Written => ({ i32: value })
const i64 = (value: number): Written => ({ i64: value })
const LENGTH_BYTES = 4

/** What elements may take beyond what they stand for: see `most_bytes` in native/addon/snappy.c, which refuses less. */
const roomFor = (length: number): number => Math.ceil(length + length / 64 + (length / 65536 + 2) * 8)

export class ParquetWriter {
  private readonly fd: number
  private position = 0
  private readonly groups: { key: Column; content: Column }[] = []
  /** Values that wait to be written: their pages, which are used again and again, so that memory does not grow. */
  private keys: Buffer[] = []
  private readonly contents = Buffer.allocUnsafeSlow(2 * GROUP_BYTES + LENGTH_BYTES * GROUP_ROWS)
  private contentsLength = 0
  private readonly compressed = Buffer.allocUnsafeSlow(roomFor(2 * GROUP_BYTES + LENGTH_BYTES * GROUP_ROWS))
  rows = 0

  constructor(fd: number) {
    this.fd = fd
    this.write(MAGIC)
  }

  /** Of at most GROUP_BYTES. When it cannot be written, this row is not in the file; earlier ones still will be. */
  add(key: string, content: Buffer): void {
    const start = this.contentsLength
    this.contents.writeUInt32LE(content.length, start)
    content.copy(this.contents, start + LENGTH_BYTES)
    this.contentsLength = start + LENGTH_BYTES + content.length
    this.keys.push(value(Buffer.from(key)))
    if (this.contentsLength < GROUP_BYTES && this.keys.length < GROUP_ROWS) return
    try {
      this.flush()
    } catch (error) {
      this.keys.pop()
      this.contentsLength = start
      throw error
    }
  }

  /** A content that is not held in memory: exactly `size` bytes come in `pieces` of at most GROUP_BYTES. */
  addLarge(key: string, size: number, pieces: Iterable<Buffer>): void {
    this.flush()
    this.atomically(() => ({
      key: this.page(value(Buffer.from(key)), 1),
      content: this.largePage(size, pieces),
    }))
    this.rows++
  }

  /** Throws when there is no room; what waits is tried again the next time. */
  private flush(): void {
    const count = this.keys.length
    if (count === 0) return
    this.atomically(() => ({
      key: this.page(Buffer.concat(this.keys), count),
      content: this.page(this.contents.subarray(0, this.contentsLength), count),
    }))
    this.rows += count
    this.keys = []
    this.contentsLength = 0
  }

  /** The file is whole afterwards. */
  finish(): void {
    this.flush()
    const footer = this.footer()
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(footer.length)
    this.write(Buffer.concat([footer, length, MAGIC]))
  }

  private atomically(writeGroup: () => { key: Column; content: Column }): void {
    const start = this.position
    try {
      this.groups.push(writeGroup())
    } catch (error) {
      ftruncateSync(this.fd, start)
      this.position = start
      throw error
    }
  }

  private page(plain: Buffer, count: number): Column {
    const offset = this.position
    const prefix = varint(plain.length)
    const elements = this.compress(plain)
    this.write(Buffer.concat([pageHeader(plain.length, i32(prefix.length + elements.length), count), prefix]))
    this.write(elements)
    return { offset, values: count, uncompressed: plain.length, compressed: this.position - offset }
  }

  /** How long it will be is known only afterwards: its header is written twice, and has the same length both times. */
  private largePage(size: number, pieces: Iterable<Buffer>): Column {
    const offset = this.position
    const plainLength = size + LENGTH_BYTES
    const header = (compressed: number) => pageHeader(plainLength, { wide: compressed }, 1)
    this.write(header(0))
    const bodyAt = this.position
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(size)
    this.write(varint(plainLength))
    this.write(this.compress(length))
    for (const piece of pieces) this.write(this.compress(piece))
    this.writeAt(header(this.position - bodyAt), offset)
    return { offset, values: 1, uncompressed: plainLength, compressed: this.position - offset }
  }

  /** Valid until the next call. Keys may be longer than all contents together. */
  private compress(plain: Buffer): Buffer {
    const room = roomFor(plain.length)
    const out = room <= this.compressed.length ? this.compressed : Buffer.allocUnsafe(room)
    return out.subarray(0, addon.snappyCompress(plain, out))
  }

  private footer(): Buffer {
    const text = (name: string): Written => ({ text: name })
    const column = (name: string, utf8: boolean): Written => ({
      struct: [
        [SCHEMA.type, i32(PARQUET_TYPE.byteArray)],
        [SCHEMA.repetition, i32(REPETITION.required)],
        [SCHEMA.name, text(name)],
        ...(utf8 ? [[SCHEMA.converted, i32(CONVERTED.utf8)] as [number, Written]] : []),
      ],
    })
    const schema: Written[] = [
      {
        struct: [
          [SCHEMA.name, text('schema')],
          [SCHEMA.children, i32(2)],
        ],
      },
      column('key', true),
      column('content', false),
    ]
    return encodeStruct([
      [FILE.version, i32(1)],
      [FILE.schema, { list: schema }],
      [FILE.rows, i64(this.rows)],
      [FILE.rowGroups, { list: this.groups.map(group => rowGroup(group)) }],
      [FILE.createdBy, text('savepoint')],
    ])
  }

  private write(bytes: Buffer): void {
    this.writeAt(bytes, this.position)
    this.position += bytes.length
  }

  private writeAt(bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length; )
      done += writeSync(this.fd, bytes, done, bytes.length - done, position + done)
  }
}

function value(bytes: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(bytes.length)
  return Buffer.concat([length, bytes])
}

const pageHeader = (uncompressed: number, compressed: Written, values: number): Buffer =>
  encodeStruct([
    [PAGE_HEADER.type, i32(PAGE.data)],
    [PAGE_HEADER.uncompressed, i32(uncompressed)],
    [PAGE_HEADER.compressed, compressed],
    [
      PAGE_HEADER.dataPage,
      {
        struct: [
          [DATA_PAGE.values, i32(values)],
          [DATA_PAGE.encoding, i32(ENCODING.plain)],
          [DATA_PAGE.definitions, i32(ENCODING.rle)],
          [DATA_PAGE.repetitions, i32(ENCODING.rle)],
        ],
      },
    ],
  ])

function rowGroup({ key, content }: { key: Column; content: Column }): Written {
  return {
    struct: [
      [ROW_GROUP.columns, { list: [columnChunk('key', key), columnChunk('content', content)] }],
      [ROW_GROUP.bytes, i64(key.uncompressed + content.uncompressed)],
      [ROW_GROUP.rows, i64(key.values)],
    ],
  }
}

const columnChunk = (name: string, column: Column): Written => ({
  struct: [
    [COLUMN.fileOffset, i64(column.offset)],
    [
      COLUMN.meta,
      {
        struct: [
          [META.type, i32(PARQUET_TYPE.byteArray)],
          [META.encodings, { list: [i32(ENCODING.plain), i32(ENCODING.rle)] }],
          [META.path, { list: [{ text: name }] }],
          [META.codec, i32(CODEC.snappy)],
          [META.values, i64(column.values)],
          [META.uncompressed, i64(column.uncompressed)],
          [META.compressed, i64(column.compressed)],
          [META.dataPage, i64(column.offset)],
        ],
      },
    ],
  ],
})
