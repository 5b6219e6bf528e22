/** What `zfs diff -FH` of OpenZFS prints, as its manual and its users show it. */
import { expect, it } from 'vitest'
import { differingInZfs } from './zfs-diff.ts'

const told = (...lines: string[]) => {
  const found = differingInZfs(Buffer.from(lines.map(line => `${line}\n`).join('')), '/tank/work')
  return found && { dirs: [...found.dirs].toSorted(), moved: [...found.moved].toSorted() }
}

it('names directories to look at, and what was renamed', () => {
  expect(told()).toEqual({ dirs: [], moved: [] })
  expect(told('M\t/\t/tank/work/', 'M\tF\t/tank/work/a', '+\tF\t/tank/work/dir/b', '-\t/\t/tank/work/gone')).toEqual({
    dirs: ['', 'a', 'dir', 'dir/b', 'gone'],
    moved: [],
  })
  expect(told('R\t/\t/tank/work/old\t/tank/work/dir/new')).toEqual({
    dirs: ['', 'dir', 'dir/new', 'old'],
    moved: ['dir/new', 'old'],
  })
})

it.each([
  'M\tF\t/tank/work/with\\0040space',
  'M\t/\t/tank/work/a/<xattrdir>',
  'M\tF\t/tank/work/a\t(+1)',
  'M\tF\t/tank/workshop/a',
  'X\tF\t/tank/work/a',
  'M\tF',
  'R\tF\t/tank/work/a',
  'M F /tank/work/a',
])('what is not understood means that anything may differ: %j', line => {
  expect(told('M\tF\t/tank/work/a', line)).toBeUndefined()
})
