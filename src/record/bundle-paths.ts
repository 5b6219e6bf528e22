/** Paths of a bundle: text where their bytes are UTF-8, and the bytes themselves beside it where they are not. */
import { type Raw, rawFromBytes, rawFromText, rawToBytes, showPath } from '../model/raw-path.ts'

const plain = /^[\x00-\x7f]*$/
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** As it is where it is UTF-8; otherwise with `\xff` for what is not, and then `bytes` has it in base64. */
export function pathText(raw: Raw): { text: string; bytes?: string } {
  if (plain.test(raw)) return { text: raw }
  const bytes = rawToBytes(raw)
  try {
    return { text: strictUtf8.decode(bytes) }
  } catch {
    return { text: showPath(raw), bytes: bytes.toString('base64') }
  }
}

export const pathFields = (raw: Raw): { path: string; path_bytes?: string } => {
  const { text, bytes } = pathText(raw)
  return bytes === undefined ? { path: text } : { path: text, path_bytes: bytes }
}

/** The bytes that such fields stand for. */
export const rawOf = (text: string, bytes: string | undefined): Raw =>
  bytes === undefined ? rawFromText(text) : rawFromBytes(Buffer.from(bytes, 'base64'))

/** Of what lies there, and of `.git` itself, nothing is in a bundle. */
export const isInGit = (path: Raw): boolean => path.includes('/.git/') || path.endsWith('/.git')
