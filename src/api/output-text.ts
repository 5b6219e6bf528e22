/** What a command writes, as text where it is text: pieces of a stream that may be cut anywhere. */

/** The longest character of UTF-8 but its last byte. */
const MAX_TAIL = 3

export interface Piece {
  text: string
  /** It is base64 of bytes that are no UTF-8. */
  isBase64: boolean
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** One stream. A character that is cut waits for its rest. */
export class OutputText {
  private tail: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): Piece | undefined {
    const bytes = this.tail.length > 0 ? Buffer.concat([this.tail, chunk]) : chunk
    const cut = bytes.length - tailOf(bytes)
    this.tail = bytes.subarray(cut)
    return cut === 0 ? undefined : toPiece(bytes.subarray(0, cut))
  }

  /** Nothing follows. */
  end(): Piece | undefined {
    const rest = this.tail
    this.tail = Buffer.alloc(0)
    return rest.length === 0 ? undefined : toPiece(rest)
  }
}

function toPiece(bytes: Buffer): Piece {
  try {
    return { text: strict.decode(bytes), isBase64: false }
  } catch {
    return { text: bytes.toString('base64'), isBase64: true }
  }
}

/** How many bytes at the end are the beginning of a character. */
function tailOf(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(MAX_TAIL, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return 0
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return back < length ? back : 0
    }
  }
  return 0
}
