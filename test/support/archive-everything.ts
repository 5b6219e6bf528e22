/** Everything that a directory can hold, and more depth than a path can name. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { addon } from '../../src/native/addon.ts'
import { work } from './archive-scratch.ts'
import { isRoot } from './machine.ts'

const MIB = 1024 * 1024

/** Everything that a directory can hold, made by the system's own means. */
export function makeEverything(): void {
  writeFileSync(join(work, 'plain.txt'), 'hello\r\n\xff\0')
  writeFileSync(join(work, 'empty'), '')
  writeFileSync(join(work, 'suid'), '#!/bin/sh\n')
  chmodSync(join(work, 'suid'), 0o4755)
  mkdirSync(join(work, 'dir/empty-dir'), { recursive: true })
  mkdirSync(join(work, 'a.b'))
  writeFileSync(join(work, 'dir/first'), 'linked')
  linkSync(join(work, 'dir/first'), join(work, 'a.b/second'))
  linkSync(join(work, 'dir/first'), join(work, 'zzz'))
  chmodSync(join(work, 'dir'), 0o555)
  for (const name of [
    Buffer.from([0xff, 0xfe, 0x41]),
    Buffer.from('new\nline'),
    Buffer.from('ü😀 '),
    Buffer.from('-rf'),
    Buffer.from('a..b'),
    Buffer.alloc(255, 0xe9),
  ]) {
    writeFileSync(Buffer.concat([Buffer.from(`${work}/`), name]), name)
  }
  symlinkSync('/etc/passwd', join(work, 'absolute-link'))
  symlinkSync('../../outside', join(work, 'escaping-link'))
  symlinkSync(Buffer.alloc(300, 0xfd), join(work, 'long-link'))
  execFileSync('mkfifo', [join(work, 'fifo')])
  if (isRoot) {
    execFileSync('mknod', [join(work, 'null'), 'c', '1', '3'])
    execFileSync('mknod', [join(work, 'disk'), 'b', '259', '300000'])
    writeFileSync(join(work, 'owned'), 'x')
    chownSync(join(work, 'owned'), 3_000_000, 4_000_000)
    // Only root captures and archives what has no rights at all.
    writeFileSync(join(work, 'no-rights'), 'x')
    chmodSync(join(work, 'no-rights'), 0)
  }
  lutimesSync(join(work, 'long-link'), 1_600_000_000.5, 1_600_000_000.5)
  utimesSync(join(work, 'plain.txt'), 1_700_000_000.123_456, 1_700_000_000.123_456)
  utimesSync(join(work, 'empty'), -5.5, -5.5)
  const root = addon.openRoot(Buffer.from(work))
  addon.utimesAt(root, 'suid', 1_234_567_890_123_456_789n)
  addon.setXattrs(root, 'plain.txt', xattrs({ 'user.a=b%': '\0\n=\xff', 'user.plain': 'value' }))
  addon.setXattrs(root, 'a.b', xattrs({ 'user.dir': 'd' }))
  addon.close(root)
  writeFileSync(
    join(work, 'large'),
    Buffer.alloc(3 * MIB + 17).map((_, i) => (i * 2_654_435_761) >>> 13),
  )
  writeFileSync(join(work, 'sparse-large'), 'start')
  truncateSync(join(work, 'sparse-large'), 20 * MIB)
  writeFileSync(join(work, 'sparse-small'), 'x')
  truncateSync(join(work, 'sparse-small'), 64 * 1024)
  writeFileSync(join(work, 'all-hole'), '')
  truncateSync(join(work, 'all-hole'), 100 * 1024)
}

export function xattrs(values: Record<string, string>): Buffer {
  const parts = Object.entries(values)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => {
      const lengths = Buffer.alloc(6)
      lengths.writeUInt16LE(name.length)
      lengths.writeUInt32LE(value.length, 2)
      return [lengths.subarray(0, 2), Buffer.from(name, 'latin1'), lengths.subarray(2), Buffer.from(value, 'latin1')]
    })
  return Buffer.concat(parts)
}

export function deepPath(components: number): string {
  const name = 'd'.repeat(200)
  const root = addon.openRoot(Buffer.from(work))
  let path = ''
  for (let i = 0; i < components; i++) {
    path = path === '' ? name : `${path}/${name}`
    addon.mkdirAt(root, path, 0o755)
  }
  const fd = addon.openAt(root, `${path}/bottom`, 0o102, 0o644)
  addon.close(fd)
  addon.close(root)
  return `${path}/bottom`
}
