/** The blobs of a bundle as Parquet: what we write, another program reads, and so do we; what is damaged is refused. */
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addon } from '../src/native/addon.ts'
import { ParquetReader } from '../src/record/parquet-reader.ts'
import { ParquetWriter } from '../src/record/parquet-writer.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const LARGE_BYTES = 40 * 1024 * 1024

let dir: string
let file: string
let large: Buffer
const small = new Map<string, Buffer>()

function* piecesOf(bytes: Buffer, length: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'savepoint-parquet-'))
  file = join(dir, 'blobs.parquet')
  const fd = openSync(file, 'w')
  const writer = new ParquetWriter(fd)
  small.set('before:/empty', Buffer.alloc(0))
  small.set('after:/noise', randomBytes(300_000))
  for (let i = 0; i < 20_000; i++) small.set(`after:/ä ${i}\n`, Buffer.from(`content ${i} `.repeat(i % 7)))
  for (const [key, content] of small) writer.add(key, content)
  large = Buffer.concat([randomBytes(LARGE_BYTES / 2), Buffer.alloc(LARGE_BYTES / 2, 'text that repeats, ')])
  writer.addLarge('after:/large', large.length, piecesOf(large, 1_000_003))
  writer.add('after:/last', Buffer.from('last'))
  small.set('after:/last', Buffer.from('last'))
  writer.finish()
  closeSync(fd)
})
afterAll(() => rmSync(dir, { recursive: true }))

describe('blobs.parquet', () => {
  it('is read by DuckDB, with the same hashes', async () => {
    const db = await DuckDBInstance.create(':memory:')
    const connection = await db.connect()
    const found = await connection.runAndReadAll(`select key, sha256(content) from read_parquet('${file}')`)
    const hashes = new Map(found.getRows().map(row => [String(row[0]), String(row[1])]))
    connection.closeSync()
    db.closeSync()
    expect(hashes.size).toBe(small.size + 1)
    for (const [key, content] of small) expect(hashes.get(key)).toBe(sha256(content))
    expect(hashes.get('after:/large')).toBe(sha256(large))
  })

  it('is read back by us, the large one into a file', () => {
    const reader = new ParquetReader(file)
    expect(reader.keys.size).toBe(small.size + 1)
    for (const [key, content] of small) expect(reader.read(reader.keys.get(key)!).equals(content)).toBe(true)
    const place = reader.keys.get('after:/large')!
    expect(reader.isLarge(place)).toBe(true)
    const fd = openSync(join(dir, 'expanded'), 'w+')
    reader.expand(place, fd)
    const bytes = Buffer.alloc(large.length)
    readSync(fd, bytes, 0, bytes.length, 4)
    closeSync(fd)
    reader.close()
    expect(bytes.equals(large)).toBe(true)
  })

  it('is smaller than what is in it, where that repeats', () => {
    expect(readFileSync(file).length).toBeLessThan(LARGE_BYTES * 0.7)
  })

  it('that is damaged anywhere never gives other bytes unnoticed as structure, and never crashes', () => {
    const tiny = join(dir, 'tiny.parquet')
    const fd = openSync(tiny, 'w')
    const writer = new ParquetWriter(fd)
    writer.add('before:/a', Buffer.from('some content that repeats, some content that repeats'))
    writer.finish()
    closeSync(fd)
    const sound = readFileSync(tiny)
    for (let at = 0; at < sound.length; at++) {
      const bytes = Buffer.from(sound)
      bytes[at]! ^= 0xff
      writeFileSync(tiny, bytes)
      expect(readAll(tiny)).toMatch(/^(read|bundle\.damaged)$/)
      writeFileSync(tiny, sound.subarray(0, at))
      expect(readAll(tiny)).toBe('bundle.damaged')
    }
  })
})

function readAll(path: string): string {
  try {
    const reader = new ParquetReader(path)
    try {
      for (const place of reader.keys.values()) reader.read(place)
    } finally {
      reader.close()
    }
    return 'read'
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('Snappy', () => {
  const compressed = (bytes: Buffer) => {
    const out = Buffer.alloc(bytes.length + 64)
    return out.subarray(0, addon.snappyCompress(bytes, out))
  }

  it('gives back what it was given, at every small length', () => {
    const source = Buffer.concat([randomBytes(80), Buffer.alloc(200, 'abc'), randomBytes(80)])
    for (let length = 0; length <= source.length; length++) {
      const bytes = source.subarray(0, length)
      const out = Buffer.alloc(length)
      addon.snappyUncompress(compressed(bytes), out)
      expect(out.equals(bytes)).toBe(true)
    }
  })

  it('refuses a buffer that may be too small', () => {
    expect(() => addon.snappyCompress(Buffer.alloc(100), Buffer.alloc(100))).toThrow(/EINVAL/)
  })

  it('never needs more than the least room that it accepts, however badly it can be done', () => {
    const memory = Buffer.alloc(200_000)
    const compressInLeast = (bytes: Buffer): number => {
      for (let room = bytes.length; ; room++)
        try {
          const length = addon.snappyCompress(bytes, memory.subarray(0, room))
          expect(length).toBeLessThanOrEqual(room)
          return length
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
        }
    }
    // Repetitions of four bytes, and so much between them that does not repeat.
    for (const gap of [59, 60, 61, 62, 64, 70, 254, 256, 258, 300]) {
      const pieces = Array.from({ length: Math.ceil(140_000 / gap) }, () => [randomBytes(gap), Buffer.from('MARK')])
      const bytes = Buffer.concat(pieces.flat()).subarray(0, 140_000)
      const length = compressInLeast(bytes)
      const out = Buffer.alloc(bytes.length)
      addon.snappyUncompress(memory.subarray(0, length), out)
      expect(out.equals(bytes)).toBe(true)
    }
  })

  it('refuses what says more or less than there is room for, and copies of what was not there', () => {
    const elements = compressed(Buffer.from('abcd'))
    for (const length of [0, 3, 5])
      expect(() => addon.snappyUncompress(elements, Buffer.alloc(length))).toThrow(/EBADMSG/)
    expect(() => addon.snappyUncompress(Buffer.from([0xfe, 1, 0]), Buffer.alloc(64))).toThrow(/EBADMSG/)
  })
})
