/** Which compression an archive has: by its name when it is written, by its first bytes when it is read. */
import { closeSync, openSync, readSync } from 'node:fs'
import type { Transform } from 'node:stream'
import { constants, createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { SavepointError } from '../errors/errors.ts'
import { mayBeTar } from './archive-tar-header.ts'
import { unsafeArchive } from './archive-unsafe.ts'

export type Compression = 'zstd' | 'gzip' | 'none'

const ZSTD_LEVEL = 3
const CHUNK_BYTES = 256 * 1024

const endings: [ending: string, compression: Compression][] = [
  ['.tar.zst', 'zstd'],
  ['.tzst', 'zstd'],
  ['.tar.gz', 'gzip'],
  ['.tgz', 'gzip'],
  ['.tar', 'none'],
]

export function compressionByName(file: string): Compression {
  const found = endings.find(([ending]) => file.toLowerCase().endsWith(ending))
  if (found) return found[1]
  throw new SavepointError('usage', `Cannot export to ${file}: its ending does not say a format`, {
    hint: `Use one of ${endings.map(([ending]) => ending).join(', ')}`,
  })
}

/** undefined when there is nothing to compress. */
export function createCompressor(compression: Compression): Transform | undefined {
  if (compression === 'gzip') return createGzip({ chunkSize: CHUNK_BYTES })
  if (compression === 'none') return undefined
  const params = { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 }
  return createZstdCompress({ chunkSize: CHUNK_BYTES, params })
}

export type Decompressor = Transform & { bytesWritten: number }

export function createDecompressor(compression: Compression): Decompressor | undefined {
  if (compression === 'none') return undefined
  return compression === 'gzip'
    ? createGunzip({ chunkSize: CHUNK_BYTES })
    : createZstdDecompress({ chunkSize: CHUNK_BYTES })
}

const others: [magic: string, name: string, command: string][] = [
  ['425a68', 'bzip2', 'bzip2 -d'],
  ['fd377a585a00', 'xz', 'xz -d'],
  ['504b0304', 'zip', 'unzip'],
  ['377abcaf271c', '7z', '7z x'],
]

/** `head`: the first bytes of the file, as many as a tar header has. */
export function compressionByContent(head: Buffer, file: string): Compression {
  const hex = head.toString('hex', 0, 8)
  if (hex.startsWith('28b52ffd')) return 'zstd'
  if (hex.startsWith('1f8b')) return 'gzip'
  const other = others.find(([magic]) => hex.startsWith(magic))
  if (!other && mayBeTar(head)) return 'none'
  if (!other) {
    throw new SavepointError('archive.unsafe', `Cannot import ${file}: it is no archive`, {
      hint: 'tar, tar.gz and tar.zst are understood',
    })
  }
  throw new SavepointError('usage', `Cannot import ${file}: it is a ${other[1]} file`, {
    hint: `tar, tar.gz and tar.zst are understood. Unpack it with \`${other[2]}\` first`,
  })
}

/**
 * Node's decompressors stop at the end of the first frame (zstd) or at what is no further member (gzip) and say nothing
 * of what follows. `consumed`: the bytes of the file that were used.
 */
export function checkNothingFollows(file: Buffer, consumed: number, compression: Compression): void {
  const fd = openSync(file, 'r')
  try {
    const window = Buffer.alloc(CHUNK_BYTES)
    let at = consumed
    for (;;) {
      const count = readSync(fd, window, 0, window.length, at)
      if (count === 0) return
      // gzip itself passes over zeros, with which tapes were filled up.
      if (compression === 'zstd' || window.subarray(0, count).some(byte => byte !== 0)) {
        throw unsafeArchive(`has data after the end of its ${compression} stream`)
      }
      at += count
    }
  } finally {
    closeSync(fd)
  }
}
