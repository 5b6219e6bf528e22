/** Looks for bytes in every file below a directory: as they are, and in everything that unpacks as zstd or gzip. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b, 0x08])
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024

/** Files (relative) that hold `wanted` in some form. Knows nothing of our formats, so a forgotten tail is found too. */
export function holdsBytes(directory: string, wanted: Buffer): string[] {
  return (readdirSync(directory, { recursive: true }) as string[])
    .filter(file => statSync(join(directory, file)).isFile())
    .filter(file => {
      const bytes = readFileSync(join(directory, file))
      return [bytes, ...unpacked(bytes)].some(part => part.includes(wanted))
    })
}

function* unpacked(bytes: Buffer): Generator<Buffer> {
  for (const at of occurrences(bytes, ZSTD_MAGIC))
    yield* attempt(() => zstdDecompressSync(bytes.subarray(at), { maxOutputLength: MAX_UNPACKED_BYTES }))
  for (const at of occurrences(bytes, GZIP_MAGIC))
    yield* attempt(() => gunzipSync(bytes.subarray(at), { maxOutputLength: MAX_UNPACKED_BYTES }))
}

function* occurrences(bytes: Buffer, magic: Buffer): Generator<number> {
  for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1)) yield at
}

function* attempt(work: () => Buffer): Generator<Buffer> {
  try {
    yield work()
  } catch {}
}
