/** Files that the recorded command changes by another of their names, or by a descriptor when the name that it was opened by is gone. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { type Recorded, record, recordScript } from './support/recorded.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

function expectBack({ directory, manifest }: Recorded, before: ReturnType<typeof imageOf>): void {
  expect([manifest.lost_events, manifest.incomplete_because]).toEqual([0, []])
  const back = savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', directory])
  expect([back.status, back.stderr]).toEqual([0, ''])
  expect(differences(before, imageOf(space.dir))).toEqual([])
}

it('a file that was only looked at comes back when it was written, or its mode set, by a new name', () => {
  for (const name of ['written', 'stamped', 'mode']) space.write(name, 'one\n')
  const before = imageOf(space.dir)
  const recorded = recordScript(
    space,
    `ln written a; echo two > a; ln mode b; chmod 600 b
     ln stamped c; echo two > c; touch -r mode c; rm c`,
  )
  expect(recorded.text(space.at('written'), 'before')).toBe('one\n')
  expect(recorded.text(space.at('written'), 'after')).toBe('two\n')
  // Neither its size nor its time tells.
  expect(recorded.file(space.at('stamped')).operations).toEqual(['write', 'existence'])
  expect(recorded.text(space.at('stamped'), 'after')).toBe('two\n')
  expectBack(recorded, before)
})

it.each([
  ['changed', `os.fchmod(fd, 0o600)`],
  ['emptied', `os.ftruncate(fd, 0)`],
  ['stamped', `os.utime(fd)`],
])('a name that is gone is no path, though the file has another: %s', (_, change) => {
  space.write('name', 'content\n')
  space.write('true (deleted)', 'content\n')
  const before = imageOf(space.dir)
  const script = `import os
os.link('name', 'other'); fd = os.open('name', os.O_RDWR); os.unlink('name'); ${change}
fd = os.open('true (deleted)', os.O_RDWR); ${change}`
  const recorded = record(space, ['python3', '-c', script])
  expect(recorded.find(space.at('name (deleted)'))).toBeUndefined()
  expect(recorded.file(space.at('true (deleted)')).operations).toContain('write')
  expectBack(recorded, before)
})

it('what has no name at all any more is nothing that could be lost', () => {
  space.write('name', 'content\n')
  const before = imageOf(space.dir)
  const script = `import os
fd = os.open('name', os.O_RDWR); os.unlink('name')
os.stat('/proc/self/fd/%d' % fd); open('/proc/self/fd/%d' % fd, 'w').write('x')`
  expectBack(record(space, ['python3', '-c', script]), before)
})
