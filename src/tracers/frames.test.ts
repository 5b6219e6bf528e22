import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventDecoder } from './decode.ts'
import { FIELD, FRAME, type Frame, FrameReader } from './frames.ts'

/** As native/helper/frames.c writes it. */
function frame(type: number, flags: number, op: number, fields: [tag: number, value: Buffer][]): Buffer {
  const head = Buffer.alloc(20)
  head.writeUInt8(type, 4)
  head.writeUInt8(flags, 5)
  head.writeUInt16LE(op, 6)
  head.writeUInt32LE(77, 8)
  head.writeBigUInt64LE(5_000_000n, 12)
  const body = fields.flatMap(([tag, value]) => {
    const start = Buffer.alloc(5)
    start.writeUInt8(tag)
    start.writeUInt32LE(value.length, 1)
    return [start, value]
  })
  const bytes = Buffer.concat([head, ...body])
  bytes.writeUInt32LE(bytes.length - 4)
  return bytes
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const samples = [
  frame(FRAME.exec, 1, 0, [
    [FIELD.exec, number(3)],
    [FIELD.parent, number(1)],
    [FIELD.ppid, number(9)],
    [FIELD.depth, number(2)],
    [FIELD.program, Buffer.from('/bin/\xff', 'latin1')],
    [FIELD.cwd, Buffer.from('/')],
    [FIELD.argv, Buffer.from('a\0\0\xfe\0', 'latin1')],
  ]),
  frame(FRAME.exit, 0, 0, [
    [FIELD.exec, number(3)],
    [FIELD.signal, number(9)],
  ]),
  frame(FRAME.path, 4 | 8, 4, [
    [FIELD.exec, number(3)],
    [FIELD.path, Buffer.from('/x')],
    [FIELD.to, Buffer.from('/y')],
  ]),
  frame(FRAME.lost, 2, 0, [[FIELD.number, number(12)]]),
]

test('frames come out whole and in order, whatever the pieces that they come in', () => {
  const stream = Buffer.concat(samples)
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), cuts => {
      const seen: Buffer[] = []
      const reader = new FrameReader((each: Frame) => void seen.push(Buffer.from(each.bytes)))
      const at = [0, ...cuts.sort((a, b) => a - b), stream.length]
      for (let i = 1; i < at.length; i++) reader.push(stream.subarray(at[i - 1], at[i]))
      expect(seen).toEqual(samples.map(each => each.subarray(4)))
    }),
  )
})

test('what frames say', () => {
  const decoder = new EventDecoder()
  const events: unknown[] = []
  new FrameReader(each => void events.push(decoder.decode(each))).push(Buffer.concat(samples))
  expect(events).toEqual([
    expect.objectContaining({
      type: 'exec',
      id: 3,
      pid: 77,
      parent: 1,
      depth: 2,
      replaces: undefined,
      program: '/bin/\xff',
      argv: ['a', '', '\xfe'],
      truncated: true,
      held: false,
      at: 5,
    }),
    { type: 'exit', id: 3, at: 5, code: undefined, signal: 'SIGKILL' },
    expect.objectContaining({ type: 'path', op: 'rename', path: '/x', to: '/y', existed: true, directory: true }),
    { type: 'lost', count: 12, pid: 77, why: 'architecture' },
  ])
})

test('a length that no frame has is an error, not an endless wait', () => {
  const reader = new FrameReader(() => {})
  expect(() => reader.push(Buffer.from([0xff, 0xff, 0xff, 0x7f]))).toThrow('a frame of')
})
