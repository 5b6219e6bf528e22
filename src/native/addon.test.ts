/** Errors, descriptors and locks of the native addon, and where files are cut into chunks. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { constants as osConstants } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { addonFile, codeOf, directory, errorOf, inside, root } from '../../test/support/native-scratch.ts'
import { addon } from './addon.ts'

const { ENOENT } = osConstants.errno
const { O_CREAT, O_RDONLY, O_RDWR } = fs.constants

describe('errors', () => {
  it('look like those of node:fs', () => {
    const ours = errorOf(() => addon.unlinkAt(root, 'missing\xe9'))
    expect(ours).toBeInstanceOf(Error)
    expect({ ...ours, message: ours.message }).toEqual({
      code: 'ENOENT',
      errno: -ENOENT,
      syscall: 'unlinkat',
      path: 'missing\xe9',
      message: "ENOENT: no such file or directory, unlinkat 'missing\xe9'",
    })
    expect(codeOf(() => addon.openRoot(Buffer.from('relative')))).toBe('EINVAL')
    expect(codeOf(() => addon.openRoot(Buffer.from('/tmp\0x')))).toBe('EINVAL')
    expect(codeOf(() => addon.openRoot(Buffer.from('/none/such')))).toBe('ENOENT')
    expect(codeOf(() => addon.close(99999))).toBe('EBADF')
    expect(codeOf(() => addon.statAt(-100, 'x'))).toBe('EBADF')
  })

  it('say TypeError for arguments of the wrong type', () => {
    const wrong = addon as unknown as Record<string, (...values: unknown[]) => unknown>
    for (const [name, values] of Object.entries({
      scanDirs: [root, 'text'],
      readEntries: [root, Buffer.alloc(0)],
      statAt: ['x', 'y'],
      openAt: [root, Buffer.alloc(1), 0, 0],
      utimesAt: [root, 'x', 5],
      chunk: [Buffer.alloc(1), 0, 1, 64, 128, -1, true],
      writeFiles: [root, null, null],
      close: [],
      hash: ['text'],
      hasherUpdate: [Buffer.alloc(1)],
    })) {
      expect(errorOf(() => wrong[name]!(...values))).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
    }
  })
})

describe('descriptors', () => {
  it('keeps a lock against another process until it ends', async () => {
    fs.writeFileSync(inside('lock'), '')
    const code = `const addon = require(process.argv[1]); const fs = require('node:fs')
      process.stdout.write(String(addon.flock(fs.openSync(process.argv[2]), 2 | 4)))
      process.stdin.resume().on('end', () => process.exit(0))`
    const child = spawn(process.execPath, ['-e', code, addonFile, join(directory, 'lock')])
    const [said] = await once(child.stdout, 'data')
    expect(String(said)).toBe('true')
    const fd = addon.openAt(root, 'lock', O_RDWR, 0)
    expect([addon.flock(fd, 2 | 4), addon.flock(fd, 1 | 4)]).toEqual([false, false])
    child.stdin.end()
    await once(child, 'exit')
    expect([addon.flock(fd, 2 | 4), addon.flock(fd, 8)]).toEqual([true, true])
    addon.close(fd)
    expect(codeOf(() => addon.flock(99999, 2))).toBe('EBADF')
  })

  it('finds data between holes and keeps the position', ctx => {
    const fd = fs.openSync(inside('file'), 'w+')
    fs.writeSync(fd, Buffer.alloc(8192, 1), 0, 8192, 65536)
    fs.ftruncateSync(fd, 1 << 20)
    fs.readSync(fd, Buffer.alloc(10))
    const segments = [...addon.dataSegments(fd, 1 << 20)]
    const position = Buffer.alloc(1)
    fs.writeSync(fd, 'P') // at the current position: behind the ten bytes that were read
    fs.readSync(fd, position, 0, 1, 10)
    fs.closeSync(fd)
    expect(String(position)).toBe('P')
    if (segments.length === 2 && segments[0] === 0) return ctx.skip('no holes on this filesystem')
    expect(segments).toEqual([65536, 8192])
  })

  it('gives no segments for an empty file, and one for a dense one', () => {
    fs.writeFileSync(inside('dense'), Buffer.alloc(10_000, 1))
    const fd = addon.openAt(root, 'dense', O_RDONLY, 0)
    expect([...addon.dataSegments(fd, 10_000)]).toEqual([0, 10_000])
    expect([...addon.dataSegments(fd, 0)]).toEqual([])
    addon.close(fd)
  })

  it('clones, or says that it cannot', () => {
    fs.writeFileSync(inside('from'), 'content')
    const from = addon.openAt(root, 'from', O_RDONLY, 0)
    const to = addon.openAt(root, 'to', O_RDWR | O_CREAT, 0o600)
    try {
      addon.cloneFd(from, to)
      expect(fs.readFileSync(inside('to'), 'utf8')).toBe('content')
    } catch (error) {
      expect(['EOPNOTSUPP', 'EXDEV', 'EINVAL']).toContain((error as NodeJS.ErrnoException).code)
    } finally {
      addon.close(from)
      addon.close(to)
    }
  })

  it('syncs and measures the filesystem of a root descriptor', () => {
    addon.syncfs(root)
    expect(codeOf(() => addon.syncfs(99999))).toBe('EBADF')
    const { free, total, type } = addon.statfs(root)
    const expected = fs.statfsSync(directory)
    expect(type).toBe(expected.type)
    expect(total).toBe((expected.blocks - expected.bfree + expected.bavail) * expected.bsize)
    expect(free).toBeGreaterThan(0)
    expect(free).toBeLessThanOrEqual(total)
  })

  it('gives the bytes of argv', () => {
    const code = `process.stdout.write(require(process.argv[1]).rawArgv().toString('hex'))`
    // A shell makes the byte that JavaScript strings cannot carry.
    const shell = `exec "$0" -e "$1" "$2" "$(printf 'a\\377\\nb')" ''`
    const hex = execFileSync('sh', ['-c', shell, process.execPath, code, addonFile], { encoding: 'utf8' })
    const parts = Buffer.from(hex, 'hex').toString('latin1').split('\0')
    expect(parts).toEqual([process.execPath, '-e', code, addonFile, 'a\xff\nb', ''])
  })
})

describe('chunk', () => {
  const [minBytes, averageBytes, maxBytes] = [2048, 8192, 32768]
  const chunk = (data: Buffer, start = 0, end = data.length, last = true) => [
    ...addon.chunk(data, start, end, minBytes, averageBytes, maxBytes, last),
  ]
  const pieces = (data: Buffer) => {
    const ends = chunk(data)
    return ends.map((end, i) => data.subarray(ends[i - 1] ?? 0, end).toString('base64'))
  }
  /** The same bytes in every run: a failure can be repeated. */
  const noise = (length: number, seed: number) => {
    const data = Buffer.alloc(length)
    for (let i = 0, state = seed; i < length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      data[i] = state >>> 24
    }
    return data
  }
  const data = noise(2_000_000, 1)

  it('respects its limits and comes near the average', () => {
    const ends = chunk(data)
    expect(ends.at(-1)).toBe(data.length)
    const sizes = ends.map((end, i) => end - (ends[i - 1] ?? 0))
    for (const size of sizes.slice(0, -1)) {
      expect(size).toBeGreaterThan(minBytes)
      expect(size).toBeLessThanOrEqual(maxBytes)
    }
    const mean = data.length / ends.length
    expect(mean).toBeGreaterThan(averageBytes * 0.7)
    expect(mean).toBeLessThan(averageBytes * 1.4)
    expect(new Set(sizes).size).toBeGreaterThan(50)
    expect(chunk(Buffer.alloc(100_000))).toEqual([32768, 65536, 98304, 100_000])
  })

  it('keeps its boundaries from version to version', () => {
    // Another table or another rule would store every large file anew.
    expect(chunk(data).slice(0, 6)).toEqual([8124, 18826, 24408, 34707, 43179, 45790])
  })

  it('is independent of how the input is cut into buffers', () => {
    const whole = chunk(data)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 3000, max: 200_000 }), { minLength: 1, maxLength: 20 }), sizes => {
        const ends: number[] = []
        let pending = Buffer.alloc(0)
        let offset = 0 // of `pending` in the data
        for (let i = 0, at = 0; at < data.length; i++) {
          const next = data.subarray(at, at + sizes[i % sizes.length]!)
          at += next.length
          pending = Buffer.concat([pending, next])
          const found = chunk(pending, 0, pending.length, at === data.length)
          for (const end of found) ends.push(offset + end)
          const consumed = found.at(-1) ?? 0
          pending = pending.subarray(consumed)
          offset += consumed
        }
        expect(ends).toEqual(whole)
      }),
      { numRuns: 10 },
    )
  })

  it('holds back a chunk that is not certain', () => {
    const [first, second] = chunk(data)
    expect(chunk(data, 0, first! - 1, false)).toEqual([])
    expect(chunk(data, 0, first! - 1, true)).toEqual([first! - 1])
    expect(chunk(data, 0, first! + 1, false)).toEqual([first])
    expect(chunk(data, first!, second! + 1, false)).toEqual([second])
    expect(chunk(Buffer.alloc(40_000), 0, 32768, false)).toEqual([32768])
    expect(chunk(Buffer.alloc(40_000), 0, 32767, false)).toEqual([])
    expect(chunk(data, 5, 5)).toEqual([])
  })

  it('finds the old chunks again after an insertion at the front', () => {
    const before = pieces(data)
    const after = new Set(pieces(Buffer.concat([noise(1000, 2), data])))
    expect(before.filter(piece => !after.has(piece)).length).toBeLessThanOrEqual(5)
  })

  it('refuses limits that make no sense', () => {
    const call = (...limits: [number, number, number]) => codeOf(() => addon.chunk(data, 0, 100, ...limits, true))
    expect([call(63, 100, 100), call(200, 100, 300), call(64, 300, 200), call(64, 128, 2 ** 33)]).toEqual(
      Array(4).fill('EINVAL'),
    )
    expect(codeOf(() => addon.chunk(data, 0, data.length + 1, 64, 128, 256, true))).toBe('EINVAL')
    expect(codeOf(() => addon.chunk(data, 5, 4, 64, 128, 256, true))).toBe('EINVAL')
  })
})

describe('trimMemory', () => {
  it('gives back to the system what was freed', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const resident = () => Number(fs.readFileSync('/proc/self/statm', 'latin1').split(' ')[1]) * 4096
    // Small enough to come from the heap, where each tenth keeps the others from going by themselves.
    let blocks = Array.from({ length: 2000 }, () => Buffer.allocUnsafeSlow(60_000).fill(1))
    const kept = blocks.filter((_, i) => i % 10 === 9)
    const held = resident()
    blocks = []
    // Another thread frees them.
    await vi.waitFor(() => {
      collect()
      addon.trimMemory()
      expect(resident()).toBeLessThan(held - 50e6)
    })
    expect(kept.every(block => block[0] === 1)).toBe(true)
  })
})

describe('randomBytes', () => {
  it('gives as many as asked for, never the same twice', () => {
    expect([0, 1, 8, 256].map(length => addon.randomBytes(length).length)).toEqual([0, 1, 8, 256])
    expect(addon.randomBytes(16).equals(addon.randomBytes(16))).toBe(false)
  })

  it('refuses more than the system gives at once', () => {
    for (const length of [257, 2 ** 31]) expect(() => addon.randomBytes(length)).toThrow(RangeError)
  })
})
