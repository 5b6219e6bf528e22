/** What the helper tells of memory that processes share: files that have a name somewhere, and nothing else. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { probeTracers } from '../src/tracers/select.ts'
import { startTraced } from './support/traced-command.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const program = `
import mmap, os
nameless = mmap.mmap(-1, 4096)
nameless[0:1] = b'x'
fd = os.memfd_create('memory')
os.ftruncate(fd, 4096)
memory = mmap.mmap(fd, 4096)
files = [open(name, 'r+b') for name in ('one', 'two', 'gone')]
maps = [mmap.mmap(file.fileno(), 4096) for file in files]
os.link('two', 'second')
os.link('gone', 'left')
os.unlink('gone')
open('ready', 'w').close()
open('go').read()
`

const seccomp = probeTracers().find(({ name }) => name === 'seccomp')!
it.skipIf(!seccomp.works)('shared memory without a name, which the guard has too, is none of it', async () => {
  for (const name of ['one', 'two', 'gone']) space.write(name, 'x'.repeat(4096))
  spawnSync('mkfifo', [space.at('go')])
  const command = startTraced(space, { driver: 'seccomp', command: ['python3', '-c', program] })
  await vi.waitUntil(() => existsSync(space.at('ready')), { timeout: 60_000 })
  const look = await command.look(() => {})
  await writeFile(space.at('go'), '')
  await command.ended
  const mapped = look!.files.filter(each => each.mapped)
  const told = mapped.map(({ path, inode }) => `${basename(path)}: ${inode === undefined ? 'this name' : 'others'}`)
  expect(told.sort()).toEqual(['gone (deleted): others', 'one: this name', 'two: others'])
})
