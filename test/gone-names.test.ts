/** What is kept of a file that goes is not seen by those who hold it open, lock by it, or watch it: it has lost its last name. */
import { expect, it } from 'vitest'
import { useRuns } from './support/background-run.ts'
import { savepoint } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

/** Watches each of its files with inotify, lets it go, and tells the events and how many names it has then. */
const watcher = `import ctypes, os, struct, sys
IN_ATTRIB, IN_DELETE_SELF, IN_IGNORED = 0x4, 0x400, 0x8000
libc = ctypes.CDLL(None)
def events(fd):
    told, at = os.read(fd, 65536), 0
    while at < len(told):
        _, mask, _, length = struct.unpack_from('iIII', told, at)
        at += 16 + length
        yield mask
def let_go(how):
    with open('f', 'w') as file: file.write('made by the run')
    fd = libc.inotify_init1(0)
    libc.inotify_add_watch(fd, b'f', IN_ATTRIB | IN_DELETE_SELF)
    with open('f') as held:
        how()
        names = os.fstat(held.fileno()).st_nlink
    seen = []
    # Ends by itself where the file has ended: blocks until there is something.
    while IN_IGNORED not in seen: seen += events(fd)
    return names, seen
def replace():
    with open('g', 'w') as file: file.write('new')
    os.replace('g', 'f')
print(let_go(lambda: os.unlink('f')), let_go(replace))
`

it.each([['seccomp'], ['ptrace'], ['none']])('inotify and fstat tell it at once: %s', tracer => {
  space.write('watcher.py', watcher)
  const { stdout } = savepoint(space, ['run', '-q', '--tracer', tracer, '--', 'python3', 'watcher.py'], {
    timeout: 20_000,
  })
  expect(stdout.trim()).toBe('(0, [4, 1024, 32768]) (0, [4, 1024, 32768])')
})

it('what went is in the history all the same', () => {
  const script =
    'mkdir d; for i in 1 2 3; do echo $i > t; mv t d/f; done; rm d/f; head -c 1500000 /dev/zero > large; unlink large'
  savepoint(space, ['run', '-q', '--', 'sh', '-c', script])
  const { stdout } = savepoint(space, ['history', 'd/f'])
  expect(stdout.match(/^snap_\w+ .*2 B/gm)).toHaveLength(3)
  expect(savepoint(space, ['history', 'large']).stdout).toContain('1.5 MB')
})
