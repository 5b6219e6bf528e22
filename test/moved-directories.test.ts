/** Directories that runs move, or only try to, while a person or another run is at work in them: undo takes back what the run did. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { untilLater } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import { LiveAgent } from './support/live-agent.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let agents: LiveAgent[]
beforeEach(() => {
  space = new Workspace()
  agents = []
})
afterEach(async () => {
  for (const agent of agents) await agent.end()
  space.remove()
})

async function begin(): Promise<LiveAgent> {
  const agent = new LiveAgent(space)
  agents.push(agent)
  await agent.begin()
  return agent
}

const files = () =>
  space.sh('find . -type f -o -type l | sort | while read f; do echo "$f=$(cat $f)"; done').split('\n')
const setUp = (commands: string) =>
  space.sh(`${commands}; find . ../ext -exec touch -h -d 2020-01-01 {} + 2> /dev/null || :`)

type Case = [what: string, before: string, run: string, person: string, left: string[], undone: string[], then?: string]
const cases: Case[] = [
  [
    'could not be moved, and was removed then',
    'mkdir a b; echo A > a/x; echo B > b/x',
    'mv -T a b 2> /dev/null; rm -r a',
    'echo P > b/x; echo P > b/p',
    ['b/p', 'b/x'],
    ['./a/x=A', './b/p=P', './b/x=P'],
  ],
  [
    'was written in, and could not be moved',
    'mkdir a b; echo A > a/x; echo B > b/x',
    'echo R > a/x; mv -T a b 2> /dev/null',
    'echo P > b/x; echo P > b/p',
    ['b/p', 'b/x'],
    ['./a/x=A', './b/p=P', './b/x=P'],
  ],
  [
    'could not be moved in from outside',
    'mkdir -p a ../ext/a; echo A > a/x; echo E > ../ext/a/x',
    'mv ../ext/a . 2> /dev/null; echo R > n',
    'echo P > a/x; echo P > a/p',
    ['a/p', 'a/x'],
    ['./a/p=P', './a/x=P'],
  ],
  [
    'was moved, and moved back by an undo in the run',
    'mkdir a; echo A > a/x',
    `${savepointInShell} run -q -- mv a b; ${savepointInShell} undo > /dev/null; echo R > n`,
    'echo P > a/p; mkdir b; echo P > b/p',
    ['a/p', 'b/p'],
    ['./a/p=P', './a/x=A', './b/p=P'],
  ],
  [
    'was moved in from outside',
    'mkdir -p ../ext/d; echo D > ../ext/d/x; echo O > ../ext/old',
    'mv ../ext/d d',
    'echo P > d/p; mv ../ext/old d/old; mkdir d/sub; ln -s ../p d/sub/link',
    ['d/old', 'd/p', 'd/sub/link', 'd/x'],
    ['./d/old=O', './d/p=P', './d/sub/link=P', './d/x=D'],
  ],
  [
    'was moved away and back',
    'mkdir a; echo X > a/x; echo Y > a/y',
    'mv a b; mv b a; rm a/y',
    'mkdir b; echo P > b/x; echo P > b/y',
    ['b/x', 'b/y'],
    ['./a/x=X', './a/y=Y', './b/x=P', './b/y=P'],
  ],
  ['was moved, and back, and away', 'mkdir a; echo X > a/x', 'mv a b; mv b a; mv a d', ':', [], ['./a/x=X']],
  [
    'changed places with another one again and again',
    'mkdir a b; echo A > a/x; echo B > b/x',
    'for i in 1 2 3; do mv -T a t; mv -T b a; mv -T t b; done',
    ':',
    [],
    ['./a/x=A', './b/x=B'],
  ],
  [
    'was moved, and then a file into it, which is not put in its place',
    'mkdir old; echo X > old/x; echo F > f',
    'mv old dir; mv f dir',
    ':',
    [],
    ['./f=F', './old/x=X'],
  ],
  [
    'got a file from outside',
    'mkdir -p ../ext dir; echo X > dir/x; echo F > ../ext/f',
    ':',
    'echo P > dir/p; echo P > dir/x',
    ['dir/f', 'dir/p', 'dir/x'],
    ['./dir/f=F', './dir/p=P', './dir/x=P'],
    'mv ../ext/f dir',
  ],
  [
    'was no directory: the move leads nowhere, and the rest of the trace is worth as much as before',
    'echo F > f; echo X > x',
    ':',
    'echo P > p',
    ['p'],
    ['./f=F', './p=P', './x=X'],
    'mv x f/x 2> /dev/null; echo R > r',
  ],
  [
    'was moved more than a hundred times',
    'mkdir d0; echo X > d0/x',
    'i=0; while [ $i -lt 130 ]; do mv d$i d$((i+1)); i=$((i+1)); done',
    ':',
    [],
    ['./d0/x=X'],
  ],
  [
    'was moved after a person had taken something out of it',
    'mkdir -p ../ext a/sub; echo X > a/x; echo Y > a/sub/y',
    ':',
    'mv a/sub ../ext/sub',
    ['a/sub/y'],
    ['./a/x=X'],
    'mv a b',
  ],
  [
    'took the place of an empty one',
    'mkdir a b; echo X > a/x',
    'mv -T a b',
    'mkdir a; echo P > a/p',
    ['a/p'],
    ['./a/p=P', './a/x=X'],
  ],
]

it.each(cases)('a directory that %s', async (_what, before, run, person, left, undone, then = ':') => {
  setUp(before)
  const agent = await begin()
  await agent.do(run)
  await untilLater(space, agent.id)
  space.sh(person)
  await agent.do(then)
  await agent.end()
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.left_alone.map(({ path }: { path: string }) => path)).toEqual(left)
  expect(files()).toEqual([...undone, ''])
})

it('a directory that could not be moved does not stand in the trace as moved', async () => {
  setUp('mkdir a b; echo A > a/x; echo B > b/x')
  const agent = await begin()
  await agent.do('mv -T a b 2> /dev/null; mv -T b a 2> /dev/null; mv -T a c')
  await agent.end()
  const { causes } = savepointJson(space, ['why', 'a'])
  expect(causes.map(({ event }: { event: { op: string; to: string } }) => [event.op, event.to])).toEqual([
    ['rename', 'c'],
  ])
})

it('of processes that race to move one directory, one has moved it', async () => {
  setUp('mkdir -p jobs; for n in 1 2 3 4 5 6 7 8 9; do mkdir jobs/$n; echo $n > jobs/$n/x; done; mkdir w1 w2 w3 w4')
  const before = files()
  const agent = await begin()
  const worker =
    'import os,sys\nfor n in range(1,10):\n  try: os.rename(f"jobs/{n}", f"w{sys.argv[1]}/{n}")\n  except OSError: pass'
  space.write('../worker.py', worker)
  await agent.do('for w in 1 2 3 4; do python3 ../worker.py $w & done; wait')
  await agent.end()
  expect(files()).not.toEqual(before)
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  expect(files()).toEqual(before)
})

it('what was made inside of another run, and moved by that, is none of the business of a third one', async () => {
  setUp('echo a > a')
  const third = await begin()
  const first = await begin()
  await first.do(`${savepointInShell} run -q -- sh -c 'mkdir d; echo 1 > d/x'; mv d/x y`)
  await first.end()
  await third.end()
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  expect(files()).toEqual(['./a=a', './y=1', ''])
})

describe('where another run makes a directory of the same name', () => {
  it.each([
    ['makes one', 'mkdir a; echo TWO > a/x', ['./a/x=TWO', './c/x=X', './c/y=Y', ''], ['./c/x=X', './c/y=Y', '']],
    ['moves one there', 'mv b a', ['./a/x=BX', './c/x=X', './c/y=Y', ''], ['./b/x=BX', './c/x=X', './c/y=Y', '']],
  ])('and %s, both go back', async (_what, second, both, one) => {
    setUp(`mkdir a; echo X > a/x; echo Y > a/y; ${second === 'mv b a' ? 'mkdir b; echo BX > b/x' : ':'}`)
    const before = files()
    const first = await begin()
    await first.do('mv a c')
    const other = await begin()
    await other.do(second)
    await first.end()
    await other.end()
    expect(files()).toEqual(both)
    expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
    expect(files()).toEqual(one)
    expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
    expect(files()).toEqual(before)
    savepoint(space, ['redo'])
    savepoint(space, ['redo'])
    expect(files()).toEqual(both)
  })

  it('what another run removes of what was moved comes back with both', async () => {
    setUp('mkdir a; echo X > a/x; echo Y > a/y')
    const before = files()
    const first = await begin()
    await first.do('mv a c')
    const other = await begin()
    await other.do('rm c/x')
    await first.end()
    await other.end()
    savepoint(space, ['undo'])
    expect(files()).toEqual(['./c/x=X', './c/y=Y', ''])
    savepoint(space, ['undo'])
    // The one has left nothing at c/x: what the undo of the other put there stays.
    expect(files()).toEqual(expect.arrayContaining(before))
  })

  it('what another run did in a directory between two moves of it stays, and is named', async () => {
    setUp('mkdir a; echo X > a/x')
    const first = await begin()
    await first.do('mv a c')
    const other = await begin()
    await other.do('echo TWO > c/new; echo TWO > c/x')
    await other.end()
    await first.do('mv c d')
    await first.end()
    const { restore } = savepointJson(space, ['undo'])
    expect(restore.left_alone.map(({ path }: { path: string }) => path)).toEqual(['d/new', 'd/x'])
    expect(files()).toEqual(['./a/x=X', './d/new=TWO', './d/x=TWO', ''])
  })

  it('what the one moved stays where the other one has taken its place, and both are named', async () => {
    setUp('mkdir a; echo X > a/x; echo Y > a/y')
    const first = await begin()
    await first.do('mv a c')
    const other = await begin()
    await other.do('mkdir a; echo TWO > a/x')
    await other.end()
    await first.end()
    const { restore } = savepointJson(space, ['undo'])
    expect(restore.left_alone.map(({ path }: { path: string }) => path)).toEqual(['a/x', 'c/x'])
    expect(files()).toEqual(['./a/x=TWO', './a/y=Y', './c/x=X', ''])
  })
})
