/** The bytes of a stored file for an archive, piece by piece, checked against its id at the end. */
import { closeSync, openSync, type PathLike, readSync } from 'node:fs'
import { isDamage } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'
import { addon } from '../native/addon.ts'
import { noteDamage, noting } from '../store/known-damage.ts'
import { type RecipeItem, wrongContent } from '../store/recipe.ts'
import type { Store } from '../store/store.ts'
import { hashZeros } from '../targets/dir/hash-zeros.ts'
import type { Segment } from './archive-sparse.ts'

const READ_BYTES = 1024 * 1024
const HOLE_BYTES = 4096

export interface Content {
  /** Where data lies, in order; the rest are holes. */
  segments: Segment[]
  /** The bytes of the segments. Throws at the end when the whole, holes included, does not match the id. */
  data(): Generator<Buffer>
}

/** `entry` is a regular file. What is known as holes is left out of the segments. */
export function openContent(store: Store, entry: Entry): Content {
  const { segments, data } = noting(store, [entry.content], () => contentOf(store, entry))
  return {
    segments,
    *data() {
      try {
        yield* data()
      } catch (error) {
        if (isDamage(error)) noteDamage(store, [entry.content])
        throw error
      }
    },
  }
}

function contentOf(store: Store, entry: Entry): Content {
  const source = store.contentSource(entry.content)
  if (source.kind === 'object') return wholeContent(store.read(entry.content), entry)
  if (source.kind === 'clone') return cloneContent(source.file, entry)
  return recipeContent(store, source.items, entry)
}

function wholeContent(bytes: Buffer, entry: Entry): Content {
  if (bytes.length !== entry.size) throw wrongContent()
  const segments = entry.sparse ? nonZero(bytes) : bytes.length > 0 ? [{ offset: 0, length: bytes.length }] : []
  return {
    segments,
    *data() {
      for (const { offset, length } of segments) yield bytes.subarray(offset, offset + length)
    },
  }
}

const zeros = Buffer.alloc(HOLE_BYTES)

/** A small sparse file is stored whole: its blocks of zeros are taken for holes, as a restore does. */
function nonZero(bytes: Buffer): Segment[] {
  const segments: Segment[] = []
  for (let at = 0; at < bytes.length; at += HOLE_BYTES) {
    const block = bytes.subarray(at, at + HOLE_BYTES)
    if (!block.equals(zeros.subarray(0, block.length))) addSegment(segments, at, block.length)
  }
  return segments
}

function addSegment(segments: Segment[], offset: number, length: number): void {
  const last = segments.at(-1)
  if (last && last.offset + last.length === offset) last.length += length
  else segments.push({ offset, length })
}

function recipeContent(store: Store, items: RecipeItem[], entry: Entry): Content {
  const segments: Segment[] = []
  let at = 0
  for (const item of items) {
    if ('chunk' in item) addSegment(segments, at, item.length)
    at += 'hole' in item ? item.hole : item.length
  }
  if (at !== entry.size) throw wrongContent()
  return {
    segments,
    *data() {
      const hasher = new Hasher()
      for (const item of items) {
        if ('hole' in item) {
          hashZeros(hasher, item.hole)
          continue
        }
        const bytes = store.readAt(store.locate(item.chunk))
        if (bytes.length !== item.length) throw wrongContent()
        hasher.update(bytes)
        yield bytes
      }
      checkDigest(hasher, entry)
    },
  }
}

function cloneContent(file: PathLike, entry: Entry): Content {
  const segments = cloneSegments(file, entry.size)
  return {
    segments,
    *data() {
      const fd = openSync(file, 'r')
      try {
        const hasher = new Hasher()
        let at = 0
        for (const { offset, length } of segments) {
          hashZeros(hasher, offset - at)
          for (at = offset; at < offset + length; ) {
            // A buffer of its own each time: the archive may hold on to it.
            const window = Buffer.allocUnsafe(Math.min(READ_BYTES, offset + length - at))
            const count = readSync(fd, window, 0, window.length, at)
            if (count === 0) throw wrongContent()
            hasher.update(window.subarray(0, count))
            yield window.subarray(0, count)
            at += count
          }
        }
        hashZeros(hasher, entry.size - at)
        checkDigest(hasher, entry)
      } finally {
        closeSync(fd)
      }
    },
  }
}

function cloneSegments(file: PathLike, size: number): Segment[] {
  const fd = openSync(file, 'r')
  try {
    const pairs = addon.dataSegments(fd, size)
    return Array.from({ length: pairs.length / 2 }, (_, i) => ({ offset: pairs[2 * i]!, length: pairs[2 * i + 1]! }))
  } finally {
    closeSync(fd)
  }
}

function checkDigest(hasher: Hasher, entry: Entry): void {
  if (hasher.digest() !== entry.content) throw wrongContent()
}
