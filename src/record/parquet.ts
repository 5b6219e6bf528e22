/** What the writer and the reader of `blobs.parquet` agree on: the numbers of the format, and our own limits. */

export const MAGIC = Buffer.from('PAR1')

export const PARQUET_TYPE = { byteArray: 6 } as const
export const ENCODING = { plain: 0, rle: 3 } as const
export const CODEC = { uncompressed: 0, snappy: 1 } as const
export const PAGE = { data: 0 } as const
export const REPETITION = { required: 0 } as const
export const CONVERTED = { utf8: 0 } as const

/** Ids of fields, by the structures of parquet.thrift. */
export const FILE = { version: 1, schema: 2, rows: 3, rowGroups: 4, createdBy: 6 } as const
export const SCHEMA = { type: 1, repetition: 3, name: 4, children: 5, converted: 6 } as const
export const ROW_GROUP = { columns: 1, bytes: 2, rows: 3 } as const
export const COLUMN = { fileOffset: 2, meta: 3 } as const
export const META = {
  type: 1,
  encodings: 2,
  path: 3,
  codec: 4,
  values: 5,
  uncompressed: 6,
  compressed: 7,
  dataPage: 9,
} as const
export const PAGE_HEADER = { type: 1, uncompressed: 2, compressed: 3, dataPage: 5 } as const
export const DATA_PAGE = { values: 1, encoding: 2, definitions: 3, repetitions: 4 } as const

/** So much content, or so many rows, are held in memory before they are written together. */
export const GROUP_BYTES = 8 * 1024 * 1024
export const GROUP_ROWS = 8192
/** A page's size is an i32; a larger content is cut into several rows (`PART_SUFFIX`). */
export const MAX_VALUE_BYTES = 1024 ** 3

/** The key of the second and further parts of a content that does not fit into one row. */
export const partKey = (key: string, part: number): string => (part === 0 ? key : `${key}#part${part + 1}`)
