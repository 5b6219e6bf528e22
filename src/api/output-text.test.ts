import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OutputText, type Piece } from './output-text.ts'

function pieces(chunks: Uint8Array[]): Piece[] {
  const text = new OutputText()
  return [...chunks.map(chunk => text.push(Buffer.from(chunk))), text.end()].filter(piece => piece !== undefined)
}
const bytesOf = (all: Piece[]) =>
  Buffer.concat(all.map(({ text, isBase64 }) => Buffer.from(text, isBase64 ? 'base64' : 'utf8')))

it('text that is cut anywhere stays text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat(40)), (text, cuts) => {
      const bytes = Buffer.from(text)
      const chunks: Buffer[] = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const length = cuts.length === 0 ? bytes.length : 1 + cuts[i % cuts.length]!
        chunks.push(bytes.subarray(at, at + length))
        at += length
      }
      const all = pieces(chunks)
      expect(all.some(({ isBase64 }) => isBase64)).toBe(false)
      expect(all.map(each => each.text).join('')).toBe(bytes.toString())
    }),
  )
})

it('no byte is lost or added, whatever they are', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9 })), chunks => {
      expect(bytesOf(pieces(chunks))).toEqual(Buffer.concat(chunks))
    }),
  )
})

it('a character waits for its rest, and at the end for nothing', () => {
  const text = new OutputText()
  expect(text.push(Buffer.from([0x61, 0xe2, 0x82]))).toEqual({ text: 'a', isBase64: false })
  expect(text.push(Buffer.from([0xac]))).toEqual({ text: '€', isBase64: false })
  expect(text.push(Buffer.from([0xe2]))).toBeUndefined()
  expect(text.end()).toEqual({ text: '4g==', isBase64: true })
})
