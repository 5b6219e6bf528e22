/** What a stream of `btrfs send` says; real ones are read in test/backend-btrfs.test.ts. */
import { describe, expect, it } from 'vitest'
import { differingIn } from './send-stream.ts'

const RENAME = 9
const UNLINK = 11
const RMDIR = 12
const TRUNCATE = 17
const END = 21
const [PATH, TO] = [15, 16]

const u16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer)
const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer)
const attribute = (kind: number, value: string | Buffer) =>
  Buffer.concat([u16(kind), u16(Buffer.from(value).length), Buffer.from(value)])
const command = (kind: number, ...attributes: Buffer[]) => {
  const body = Buffer.concat(attributes)
  return Buffer.concat([u32(body.length), u16(kind), u32(0), body])
}
const stream = (...commands: Buffer[]) => Buffer.concat([Buffer.from('btrfs-stream\0'), u32(1), ...commands])
const end = command(END)
const told = (...commands: Buffer[]) => {
  const found = differingIn(stream(...commands))
  return found && { dirs: [...found.dirs].toSorted(), moved: [...found.moved].toSorted() }
}

describe('a stream of differences', () => {
  it('names directories to look at, and those that may be others by now', () => {
    expect(told(end)).toEqual({ dirs: [], moved: [] })
    expect(told(command(UNLINK, attribute(PATH, 'a/b')), end)).toEqual({ dirs: ['a', 'a/b'], moved: [] })
    expect(told(command(RENAME, attribute(PATH, 'x'), attribute(TO, 'a/y')), end)).toEqual({
      dirs: ['', 'a', 'a/y', 'x'],
      moved: ['a/y', 'x'],
    })
  })

  it('has names of bytes', () => {
    expect(told(command(UNLINK, attribute(PATH, Buffer.from([0xff, 0x0a]))), end)?.dirs).toEqual(['', '\xff\n'])
  })

  it('says below its name what was done to it while it had none', () => {
    expect(told(command(RENAME, attribute(PATH, 'o257-8-0'), attribute(TO, 'n')), end)?.dirs).toEqual(['', 'n'])
    const aside = command(RENAME, attribute(PATH, 'd'), attribute(TO, 'o257-8-0'))
    const inside = command(TRUNCATE, attribute(PATH, 'o257-8-0/e/f'))
    const back = command(RENAME, attribute(PATH, 'o257-8-0'), attribute(TO, 'd'))
    expect(told(aside, inside, back, end)).toEqual({ dirs: ['', 'd', 'd/e', 'd/e/f'], moved: ['d'] })
    // Into another one that has none.
    const into = command(RENAME, attribute(PATH, 'o257-8-0'), attribute(TO, 'o300-8-0/x'))
    const then = command(RENAME, attribute(PATH, 'o300-8-0'), attribute(TO, 'y'))
    expect(told(aside, inside, into, then, end)?.dirs).toEqual(['', 'd', 'y', 'y/x', 'y/x/e', 'y/x/e/f'])
    // What goes away has no name in the end.
    expect(told(aside, inside, command(RMDIR, attribute(PATH, 'o257-8-0')), end)?.dirs).toEqual(['', 'd'])
    // Somebody's own directory of such a name.
    expect(told(inside, end)).toBeUndefined()
  })

  it('is not believed when it is none, or cut off', () => {
    expect(differingIn(Buffer.from('something else entirely'))).toBeUndefined()
    expect(told(command(UNLINK, attribute(PATH, 'a')))).toBeUndefined()
    const whole = stream(command(UNLINK, attribute(PATH, 'a')), end)
    for (let length = 0; length < whole.length; length++)
      expect(differingIn(whole.subarray(0, length)), `${length}`).toBeUndefined()
  })
})
