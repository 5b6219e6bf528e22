/** What a bundle says of git is the same whether git is asked about a few paths or lists all. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readWorkTree } from '../src/files/git-work-tree.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const ODD = [':colon', 'st*r', 'star', '-dash', 'with space', 'd/e/f', '[a]', '\\back', '"quoted"', 'new\nline']
const LOOKED_AT = [...ODD, 'd', 'd/e', 'out', 'missing', 'd/missing/x', 'sub/x', 'untracked', 'staged', 'gone', '*']

it('of odd names, what is not there, and directories', async () => {
  for (const name of ODD) space.write(name)
  for (let i = 0; i < 100; i++) space.write(`many/${i}`)
  space.write('gone')
  space.write('.gitignore', 'out\n')
  space.sh('git init -q; git add -A; git commit -qm 1; rm gone; git rm -q --cached star')
  for (const name of ['out', 'untracked', 'staged']) space.write(name)
  space.sh('git add staged; echo other > d/e/f; git add d')
  const few = await readWorkTree(space.dir, LOOKED_AT, space.env)
  const all = await readWorkTree(
    space.dir,
    [...LOOKED_AT, ...Array.from({ length: 100 }, (_, i) => `many/${i}`)],
    space.env,
  )
  expect([few.tracked.size, all.tracked.size]).toEqual([11, 112])
  expect(few.head).toBe(all.head)
  expect(few.ignored).toEqual(all.ignored)
  for (const path of LOOKED_AT) {
    expect([path, few.tracked.get(path), few.committed.get(path)]).toEqual([
      path,
      all.tracked.get(path),
      all.committed.get(path),
    ])
  }
  expect(few.committed.get('star')).toBeDefined()
  expect(few.tracked.get(':colon')!.size).toBe(7)
})

it('of names that are not ASCII', async () => {
  space.write('ümlaut')
  space.sh('git init -q; git add -A; git commit -qm 1')
  const raw = Buffer.from('ümlaut').toString('latin1')
  const { tracked, committed } = await readWorkTree(space.dir, [raw], space.env)
  expect([tracked.has(raw), committed.has(raw)]).toEqual([true, true])
})

it('of a sparse index, which git would write to the repository for', async () => {
  for (const name of ['in/a', 'out/deep/b', 'out/t.log', '.gitignore']) space.write(name, '*.log\n')
  space.sh('git init -q; git add -f .; git commit -qm 1')
  const paths = ['in/a', 'out/deep/b', 'out/t.log', 'out', 'out/u.log', 'in/none']
  const whole = await readWorkTree(space.dir, paths, space.env)
  space.sh(
    'git sparse-checkout set --cone --sparse-index in; git rm -q --cached .gitignore; ls .git/objects > ../before',
  )
  space.write('out/u.log')
  const { tracked, committed, ignored, head } = await readWorkTree(space.dir, paths, space.env)
  expect(space.sh('ls .git/objects | diff ../before -')).toBe('')
  for (const path of paths) expect([path, tracked.get(path)?.oid]).toEqual([path, whole.tracked.get(path)?.oid])
  expect([head, committed.get('out/deep/b'), ignored]).toEqual([
    whole.head,
    whole.committed.get('out/deep/b'),
    new Set(['out/u.log']),
  ])
})
