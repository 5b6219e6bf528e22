/**
 * Thrift's compact protocol, as far as the metadata of a Parquet file needs it. What is read comes from outside: everything is
 * bounded, and what makes no sense throws `BadThrift`.
 */

export class BadThrift extends Error {}

const TYPE = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
} as const
const MAX_DEPTH = 16
const SHORT_LIST = 15
const MAX_VARINT_BYTES = 10

/** i32 and i64 alike: numbers, which must be whole. */
export type ThriftValue = number | boolean | Buffer | ThriftValue[] | ThriftStruct
export type ThriftStruct = Map<number, ThriftValue>

/** What is written: numbers by their width. */
export type Written =
  | { i32: number }
  | { i64: number }
  | { text: string }
  | { struct: [id: number, value: Written][] }
  | { list: Written[] }
  /** An i32 that takes five bytes whatever its value, so that it can be put in later. */
  | { wide: number }

const zigzag = (value: number): bigint => (BigInt(value) << 1n) ^ (BigInt(value) >> 63n)

function putVarint(out: number[], value: bigint): void {
  let rest = value
  for (; rest > 0x7fn; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80)
  out.push(Number(rest))
}

/** The length of a raw Snappy stream is written like this, too. */
export function varint(value: number): Buffer {
  const out: number[] = []
  putVarint(out, BigInt(value))
  return Buffer.from(out)
}

function typeOf(value: Written): number {
  if ('i32' in value || 'wide' in value) return TYPE.i32
  if ('i64' in value) return TYPE.i64
  if ('text' in value) return TYPE.binary
  return 'list' in value ? TYPE.list : TYPE.struct
}

function putValue(out: number[], value: Written): void {
  if ('i32' in value) putVarint(out, zigzag(value.i32))
  else if ('i64' in value) putVarint(out, zigzag(value.i64))
  else if ('wide' in value) {
    const bits = zigzag(value.wide)
    for (let i = 0n; i < 5n; i++) out.push(Number((bits >> (7n * i)) & 0x7fn) | (i < 4n ? 0x80 : 0))
  } else if ('text' in value) {
    const bytes = Buffer.from(value.text)
    putVarint(out, BigInt(bytes.length))
    out.push(...bytes)
  } else if ('list' in value) {
    const { list } = value
    const type = list.length === 0 ? TYPE.struct : typeOf(list[0]!)
    out.push((Math.min(list.length, SHORT_LIST) << 4) | type)
    if (list.length >= SHORT_LIST) putVarint(out, BigInt(list.length))
    for (const item of list) putValue(out, item)
  } else {
    let last = 0
    for (const [id, field] of value.struct) {
      out.push(((id - last) << 4) | typeOf(field))
      last = id
      putValue(out, field)
    }
    out.push(0)
  }
}

export function encodeStruct(fields: [id: number, value: Written][]): Buffer {
  const out: number[] = []
  putValue(out, { struct: fields })
  return Buffer.from(out)
}

/** `end`: where the next byte after the structure is. */
export function decodeStruct(bytes: Buffer, start = 0): { value: ThriftStruct; end: number } {
  const reader = new Reader(bytes, start)
  const value = reader.struct(0)
  return { value, end: reader.at }
}

class Reader {
  at: number
  private readonly bytes: Buffer

  constructor(bytes: Buffer, start: number) {
    this.bytes = bytes
    this.at = start
  }

  struct(depth: number): ThriftStruct {
    if (depth > MAX_DEPTH) throw new BadThrift('it is nested too deeply')
    const fields: ThriftStruct = new Map()
    for (let id = 0; ; ) {
      const head = this.byte()
      if (head === 0) return fields
      const delta = head >> 4
      id = delta === 0 ? this.number() : id + delta
      fields.set(id, this.value(head & 0xf, depth))
    }
  }

  private value(type: number, depth: number): ThriftValue {
    switch (type) {
      case TYPE.true:
      case TYPE.false:
        return type === TYPE.true
      case TYPE.byte:
        return this.byte()
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        return this.number()
      case TYPE.double:
        return this.take(8).readDoubleLE(0)
      case TYPE.binary:
        return this.take(this.length())
      case TYPE.list:
      case TYPE.set:
        return this.list(depth)
      case TYPE.struct:
        return this.struct(depth + 1)
      default:
        throw new BadThrift(`a field has the type ${type}`)
    }
  }

  private list(depth: number): ThriftValue[] {
    const head = this.byte()
    const count = head >> 4 === SHORT_LIST ? this.length() : head >> 4
    // Each takes a byte at least.
    if (count > this.bytes.length - this.at) throw new BadThrift('a list is longer than the file')
    const isBoolean = (head & 0xf) === TYPE.true || (head & 0xf) === TYPE.false
    return Array.from({ length: count }, () => (isBoolean ? this.byte() === 1 : this.value(head & 0xf, depth + 1)))
  }

  private byte(): number {
    if (this.at >= this.bytes.length) throw new BadThrift('it ends too early')
    return this.bytes[this.at++]!
  }

  private take(length: number): Buffer {
    if (length > this.bytes.length - this.at) throw new BadThrift('it ends too early')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  private varint(): bigint {
    let value = 0n
    for (let i = 0n; i < MAX_VARINT_BYTES; i++) {
      const byte = this.byte()
      value |= BigInt(byte & 0x7f) << (7n * i)
      if (byte < 0x80) return value
    }
    throw new BadThrift('a number is too long')
  }

  private length(): number {
    return whole(this.varint())
  }

  private number(): number {
    const bits = this.varint()
    return whole((bits >> 1n) ^ -(bits & 1n))
  }
}

function whole(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new BadThrift('a number is too large')
  return number
}
