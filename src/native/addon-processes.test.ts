/** Pipes, and signals for a process that is known by a descriptor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, readFileSync, readlinkSync, readSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { expect, it } from 'vitest'
import { addon } from './addon.ts'

it('a pipe is a real one, and ours alone', () => {
  const { read, write } = addon.pipe()
  expect(readlinkSync(`/proc/self/fd/${read}`)).toMatch(/^pipe:/)
  writeSync(write, 'through')
  const buffer = Buffer.alloc(20)
  expect(buffer.toString('utf8', 0, readSync(read, buffer))).toBe('through')
  for (const fd of [read, write]) closeSync(fd)
})

it('a signal goes to the process of the descriptor, and to none after it', async () => {
  const child = spawn('sleep', ['300'])
  const fd = addon.pidfdOpen(child.pid!)
  addon.pidfdSignal(fd, 15)
  expect(await once(child, 'close')).toEqual([null, 'SIGTERM'])
  expect(() => addon.pidfdSignal(fd, 15)).toThrow(expect.objectContaining({ code: 'ESRCH' }))
  expect(() => addon.pidfdOpen(child.pid!)).toThrow(expect.objectContaining({ code: 'ESRCH' }))
  expect(() => addon.pidfdOpen(0)).toThrow(expect.objectContaining({ code: 'EINVAL' }))
  closeSync(fd)
})

it('an error has the name that Node gives it', () => {
  expect(() => addon.takeEnd(1)).toThrow(expect.objectContaining({ code: 'ECHILD' }))
  const source = readFileSync(new URL('../../native/addon/napi-util.c', import.meta.url), 'utf8')
  const named = new Set([...source.matchAll(/NAME\((E\w+)\)/g)].map(([, name]) => name))
  const numbers = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]))
  // Two of one number are told apart by nobody.
  const isKnown = (number: number) =>
    Object.entries(constants.errno).some(([name, at]) => at === number && named.has(name))
  expect([...numbers].filter(([number]) => !isKnown(number)).map(([, name]) => name)).toEqual([])
})
