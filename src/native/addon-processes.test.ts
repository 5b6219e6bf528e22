/** Pipes, and signals for a process that is known by a descriptor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, readlinkSync, readSync, writeSync } from 'node:fs'
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
