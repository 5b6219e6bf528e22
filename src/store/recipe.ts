/** How a large file is put together: chunks that are objects of their own, and holes. Stored under the id of the whole. */
import { SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { ID_BYTES } from '../model/id.ts'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'

const RECIPE_MAGIC = 0x52
const RECIPE_VERSION = 1
const ITEM = { chunk: 1, hole: 2 } as const

export type RecipeItem = { chunk: Id; length: number } | { hole: number }

export function encodeRecipe(items: readonly RecipeItem[]): Buffer {
  const out = new ByteWriter(16 + items.length * 38)
  out.u8(RECIPE_MAGIC)
  out.u8(RECIPE_VERSION)
  out.varint(items.length)
  for (const item of items) {
    if ('hole' in item) {
      out.u8(ITEM.hole)
      out.varint(item.hole)
    } else {
      out.u8(ITEM.chunk)
      out.raw(item.chunk)
      out.varint(item.length)
    }
  }
  return out.finish()
}

export function decodeRecipe(bytes: Buffer): RecipeItem[] {
  const input = new ByteReader(bytes, 'the recipe of a large file')
  if (input.u8() !== RECIPE_MAGIC || input.u8() !== RECIPE_VERSION) throw input.malformed('it is not a recipe')
  const count = input.varint()
  const items: RecipeItem[] = []
  for (let i = 0; i < count; i++) {
    const type = input.u8()
    if (type === ITEM.hole) items.push({ hole: input.varint() })
    else if (type === ITEM.chunk) items.push({ chunk: input.raw(ID_BYTES), length: input.varint() })
    else throw input.malformed('an item has an unknown type')
  }
  if (!input.finished) throw input.malformed('it has bytes after its end')
  return items
}

export function recipeSize(items: readonly RecipeItem[]): number {
  return items.reduce((sum, item) => sum + ('hole' in item ? item.hole : item.length), 0)
}

export const wrongContent = (): SavepointError =>
  new SavepointError('store.damaged', 'Cannot use stored content: its bytes do not match its id', {
    hint: '`savepoint verify` shows what is affected; where only the index is wrong, `savepoint verify --repair` mends it',
  })
