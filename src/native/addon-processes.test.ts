/** Pipes, signals for a process that is known by a descriptor, and what processes have mapped. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addon } from './addon.ts'
import { MAPPING } from './mapping-calls.ts'

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

it('tells files that can be written through memory, by each of two ways, and no others', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'savepoint-mapped-'))
  const [shared, own, read] = ['sha\nred', 'own', 'read'].map(name => join(directory, name))
  for (const path of [shared!, own!, read!]) writeFileSync(path, 'x'.repeat(3 * 4096))
  const script = `
import mmap, os, sys
files = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
kept = [mmap.mmap(files[0], 4096), mmap.mmap(files[0], 4096, offset=8192)]
kept += [mmap.mmap(files[1], 0, flags=mmap.MAP_PRIVATE), mmap.mmap(files[2], 0, prot=mmap.PROT_READ)]
print('mapped', flush=True)
sys.stdin.read()`
  const child = spawn('python3', ['-c', script, shared!, own!, read!], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  try {
    await Promise.race([once(child.stdout, 'data'), ended])
    for (const byText of [false, true]) {
      const told = mappings(byText)
      const its = (path: string) => told.filter(({ ino }) => ino === statSync(path, { bigint: true }).ino)
      // As one, although it is mapped twice.
      expect(its(shared!)).toHaveLength(1)
      if (byText) expect(its(shared!)[0]!.path).toBe(shared)
      expect([...its(own!), ...its(read!)]).toEqual([])
    }
  } finally {
    child.kill()
    await ended
    rmSync(directory, { recursive: true })
  }
})

it('tells what a process has mapped whose first thread has ended', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'savepoint-mapped-'))
  const path = join(directory, 'shared')
  writeFileSync(path, 'x'.repeat(4096))
  // The call ends one thread, and no more.
  const script = `
import ctypes, mmap, os, sys, threading
kept = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)
first = f'/proc/self/task/{os.getpid()}/stat'
def go_on():
  while open(first).read().rsplit(')')[-1].split()[0] != 'Z': pass
  print('alone', flush=True)
  sys.stdin.read()
  os._exit(0)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)`
  const child = spawn('python3', ['-c', script, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  try {
    await Promise.race([once(child.stdout, 'data'), ended])
    const { ino } = statSync(path, { bigint: true })
    for (const byText of [false, true]) expect(mappings(byText).map(each => each.ino)).toContain(ino)
  } finally {
    child.stdin.end()
    await ended
    rmSync(directory, { recursive: true })
  }
})

function mappings(byText: boolean): { ino: bigint; path: string }[] {
  const bytes = addon.sharedMappings(byText)
  const found: { ino: bigint; path: string }[] = []
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + MAPPING.path + bytes.readUInt32LE(at + MAPPING.pathLength)
    found.push({ ino: bytes.readBigUInt64LE(at + MAPPING.ino), path: bytes.toString('utf8', at + MAPPING.path, end) })
  }
  return found
}
