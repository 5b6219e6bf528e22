/** With -q every listing is the names of its elements, one a line, and nothing where there is nothing. */
import { afterEach, beforeEach, expect, it, test } from 'vitest'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { smallWorkspace } from './support/dialogue.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

function quiet(...args: string[]): string[] {
  const { status, stdout, stderr } = savepoint(space, [...args, '-q'])
  expect({ args, status, stderr }).toEqual({ args, status: 0, stderr: '' })
  return stdout.split('\n').slice(0, -1)
}

it('snapshots, log, branches, runs, operations, tag, history, changes, prune', () => {
  savepoint(space, ['snapshot', '-m', 'first'])
  for (const i of [1, 2]) savepoint(space, ['run', '--', 'sh', '-c', `echo ${i} > a.txt`])
  savepoint(space, ['tag', 'good'])
  savepoint(space, ['tag', 'base', 'first'])
  const idsOf = (...args: string[]) => savepointJson(space, args).map((one: { id: string }) => one.id)
  for (const listing of ['snapshots', 'log', 'branches', 'runs', 'operations']) {
    expect([listing, quiet(listing)]).toEqual([listing, idsOf(listing)])
    expect(quiet(listing).length).toBeGreaterThan(0)
  }
  for (const listing of ['snapshots', 'log', 'runs', 'operations'])
    expect(quiet(listing, '-n', '1')).toEqual(idsOf(listing).slice(0, 1))
  expect(quiet('log', '--operations')).toEqual(quiet('operations'))
  expect(quiet('tag')).toEqual(['base', 'good'])
  expect(quiet('head')).toEqual(quiet('snapshots', '-n', '1'))
  const { versions } = savepointJson(space, ['history', 'a.txt'])
  expect(quiet('history', 'a.txt', '--all')).toEqual(versions.map((one: { snapshot: string }) => one.snapshot))
  expect(quiet('history', 'a.txt')).toHaveLength(3)
  space.sh('echo 3 > a.txt; mv src/b.txt src/c.txt')
  expect(quiet('changes')).toEqual(['a.txt', 'src/c.txt'])
  const { decisions } = savepointJson(space, ['prune', '--keep', '0', '--dry-run'])
  const gone = decisions.filter((one: { keep: boolean }) => !one.keep).map((one: { snapshot: string }) => one.snapshot)
  expect(gone.length).toBeGreaterThan(0)
  expect(quiet('prune', '--keep', '0', '--dry-run')).toEqual(gone)
  expect(quiet('prune', '--keep', '0')).toEqual(gone)
})

test.each([['runs'], ['operations'], ['tag'], ['log', '--operations'], ['changes'], ['prune']])(
  '%s with nothing to list says nothing',
  (...args) => {
    savepoint(space, ['snapshot'])
    expect(quiet(...args)).toEqual([])
  },
)
