/** Archives by hand, also such as no tar would write. */
import { writeFileSync } from 'node:fs'
import { encodePax } from '../../src/engine/archive-pax.ts'
import { encodeTarHeader, type TarHeader } from '../../src/engine/archive-tar-header.ts'
import { out } from './archive-scratch.ts'

export const header = (fields: Partial<TarHeader>): Buffer =>
  encodeTarHeader({
    name: 'x',
    mode: 0o644,
    uid: 0,
    gid: 0,
    size: 0,
    mtimeSeconds: 0,
    type: '0',
    linkname: '',
    devMajor: 0,
    devMinor: 0,
    ...fields,
  })
export const padded = (body: string | Buffer): Buffer => {
  const bytes = Buffer.from(body as string)
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 511)])
}
export const file = (name: string, body = 'content', fields: Partial<TarHeader> = {}) =>
  Buffer.concat([header({ name, size: Buffer.byteLength(body), ...fields }), padded(body)])
export const pax = (records: Record<string, string>, type = 'x') => {
  const body = encodePax(Object.entries(records))
  return Buffer.concat([header({ name: 'pax', type, size: body.length }), padded(body)])
}
export const long = (type: 'L' | 'K', text: string) =>
  Buffer.concat([header({ name: '././@LongLink', type, size: text.length + 1 }), padded(`${text}\0`)])
export const END = Buffer.alloc(1024)
export const write = (...parts: Buffer[]): string => {
  writeFileSync(out('bad.tar'), Buffer.concat(parts))
  return out('bad.tar')
}
export const changed = (block: Buffer, at: number, value: string): Buffer => {
  const copy = Buffer.from(block)
  copy.write(value, at, 'latin1')
  copy.write('        ', 148, 'latin1')
  const sum = copy.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return copy
}
