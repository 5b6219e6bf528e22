/** Files that the recorded command changes by another of their names, or by a descriptor when the name that it was opened by is gone. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { giveToUser, savepoint, savepointAsUser } from './support/built-cli.ts'
import { gated, isRoot } from './support/machine.ts'
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
  space.sh('touch empty filled')
  const before = imageOf(space.dir)
  const recorded = recordScript(
    space,
    `ln written a; echo two > a; ln mode b; chmod 600 b; ln empty d; touch -d 2001-02-03 d; ln filled e; echo x > e
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

const restore = (directory: string, side: string) =>
  savepointAsUser(space, ['bundle', 'restore', side, '--in-place', '--yes', directory])

it('two files that the command made one are two again, each with its mode and time', () => {
  space.sh(
    `echo same > a; echo same > b; echo same > c; cp -p c d; chmod 600 b d; touch -d 2001-02-03 a; touch -d 2002-03-04 b`,
  )
  const before = imageOf(space.dir)
  const recorded = recordScript(
    space,
    'ln -f a b; chmod 640 a; ln -f c d; chmod 600 c; ln c new; touch -d 2003-04-05 new',
  )
  expectBack(recorded, before)
})

it('a file whose time is set by one name, and that is moved by another, is known by each of them', () => {
  space.sh('for i in a b c; do echo $i > $i; touch -d 2001-02-03 $i; done; ln a a2; ln a a3')
  const before = imageOf(space.dir)
  // With -h it is not opened.
  const script =
    'ls -l > /dev/null; ln a l; touch -h a; mv l m; mv b t; touch -h t; mv t b; mv c d; touch -h d; chmod 600 d; ln d c; rm d'
  expectBack(recordScript(space, script), before)
})

it('FIFOs and links that were changed by one name and removed by another come back as they were', () => {
  space.sh(
    `mkfifo a c; ln a b; ln c d; ln -s target e; ln e f; ln -s target g; ln g h; touch -h -d 2001-02-03 a c e g; chmod 640 c`,
  )
  const before = imageOf(space.dir)
  const recorded = recordScript(
    space,
    'chmod 600 b; rm a; touch -d 2002-03-04 d; mv c moved; touch -h -d 2003-04-05 f; rm e; touch -h h; ln -sf other g',
  )
  expect(recorded.file(space.at('a')).before.mode).toBe(0o644)
  expectBack(recorded, before)
})

it('two FIFOs, or links, that the command made one are two again', () => {
  space.sh(
    `mkfifo a b; chmod 600 b; touch -d 2001-02-03 a; touch -d 2002-03-04 b; ln -s t c; ln -s t d; touch -h -d 2001-02-03 d`,
  )
  const before = imageOf(space.dir)
  const recorded = recordScript(space, 'ln -f a b; chmod 640 a; ln -f c d; touch -h -d 2003-04-05 d; mknod e p; ln e f')
  expectBack(recorded, before)
})

gated(isRoot, 'root', 'two files of two owners that the command made one are two again', () => {
  space.sh('echo same > a; cp -p a b; mkfifo c; mkfifo d; touch -r a b c d; chown 1:1 b d')
  const before = imageOf(space.dir)
  expectBack(recordScript(space, 'ln -f a b; ln -f c d; chown 2:2 a d'), before)
})

it('what has no right to be read by its own user is read, and comes back', () => {
  space.sh(
    'echo one > shut; echo two > gone; echo three > opened; echo four > blind; echo five > twin; chmod 0 shut gone opened blind twin',
  )
  giveToUser(space)
  const before = imageOf(space.dir)
  const script =
    'rm gone; chmod 600 opened; echo new > opened; chmod 0 opened; chmod 200 blind; echo more >> blind; ln twin other; rm twin other; echo made > made; chmod 0 made; mv shut moved'
  const directory = join(space.base, 'shut')
  const recorded = savepointAsUser(space, ['record', '-o', directory, '--', 'sh', '-ec', script])
  expect([recorded.status, recorded.stderr]).toEqual([0, expect.not.stringContaining('INCOMPLETE')])
  const after = imageOf(space.dir)
  expect(after.get('made')).toMatch(/^file 0 /)
  expect(restore(directory, '--before')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(before, imageOf(space.dir))).toEqual([])
  expect(restore(directory, '--after')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(after, imageOf(space.dir))).toEqual([])
})

it('a link whose target is not UTF-8 goes and comes, by the undo bundle, too', () => {
  const before = imageOf(space.dir)
  const recorded = recordScript(space, `ln -s "$(printf 'a\\377b')" link`)
  const after = imageOf(space.dir)
  const ends = (...args: string[]) =>
    expect(savepoint(space, ['bundle', 'restore', ...args, '--in-place', '--yes'])).toMatchObject({
      status: 0,
      stderr: '',
    })
  ends('--before', recorded.directory)
  ends('--after', recorded.directory)
  ends('--before', `${recorded.directory}.undo2`)
  expect(differences(before, imageOf(space.dir))).toEqual([])
  ends('--before', `${recorded.directory}.undo`)
  expect(differences(after, imageOf(space.dir))).toEqual([])
})
