/** What files in a spool hold, told as one word, to compare them with each other and with what a snapshot has. */
import { constants, readlinkSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { KeptFile } from '../tracers/kept-log.ts'

const READ_BYTES = 1024 * 1024

export const isFile = ({ mode }: KeptFile): boolean => (mode & constants.S_IFMT) === constants.S_IFREG

export const targetOf = (link: string): Raw => rawFromBytes(readlinkSync(link, 'buffer'))

/** Undefined when it is not there any more, or cannot be read. */
export async function contentOfKept(spool: string, kept: KeptFile): Promise<string | undefined> {
  const file = join(spool, kept.name)
  try {
    if (!isFile(kept)) return wordOf('link', targetOf(file))
    const handle = await open(file, 'r')
    return wordOf('file', await hashOf(handle).finally(() => handle.close()))
  } catch (error) {
    if (!errnoOf(error)) throw error
    return undefined
  }
}

/** The same word for the same content. */
export function contentOfEntry(entry: Entry | undefined): string | undefined {
  if (entry?.kind === 'file') return wordOf('file', entry.content)
  return entry?.kind === 'link' ? wordOf('link', entry.target) : undefined
}

const wordOf = (kind: 'file' | 'link', content: Id | Raw): string => `${kind} ${content}`

async function hashOf(handle: FileHandle): Promise<Id> {
  const hasher = new Hasher()
  const bytes = Buffer.allocUnsafe(READ_BYTES)
  for (;;) {
    const { bytesRead } = await handle.read(bytes, 0, bytes.length)
    if (bytesRead === 0) return hasher.digest()
    hasher.update(bytes.subarray(0, bytesRead))
  }
}
