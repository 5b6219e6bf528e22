import { expect, it, test } from 'vitest'
import { cpuMsDuring } from '../../test/support/cpu-time.ts'
import { makeNodes } from './fixture-result.ts'
import { drawTree } from './log-tree.ts'

const draw = (...pairs: string[]) =>
  drawTree(makeNodes(...pairs)).map(({ graph, node }) => (node ? graph + node.snapshot.id.slice(5) : graph))

it('draws a line', () => expect(draw('c b', 'b a', 'a')).toEqual(['* c', '* b', '* a']))

it('draws nothing for nothing', () => expect(draw()).toEqual([]))

it('joins a branch where it began', () => {
  expect(draw('d b', 'c b', 'b a', 'a')).toEqual(['* d', '| * c', '|/', '* b', '* a'])
})

it('draws a branch without interruption, the newest first', () => {
  expect(draw('f c', 'e d', 'd b', 'c b', 'b a', 'a')).toEqual(['* f', '* c', '| * e', '| * d', '|/', '* b', '* a'])
})

it('draws several branches of one snapshot and branches of branches', () => {
  expect(draw('d a', 'c a', 'b a', 'a')).toEqual(['* d', '| * c', '|/', '| * b', '|/', '* a'])
  expect(draw('e a', 'd b', 'c b', 'b a', 'a')).toEqual(['* e', '| * d', '| | * c', '| |/', '| * b', '|/', '* a'])
})

it('draws two trees one after the other, an empty line apart', () => {
  expect(draw('d c', 'b a', 'c', 'a')).toEqual(['* d', '* c', '', '* b', '* a'])
  expect(draw('f b', 'e', 'd b', 'c a', 'b a', 'a')).toEqual([
    ...['* f', '| * d', '|/', '* b', '| * c', '|/', '* a'],
    ...['', '* e'],
  ])
})

it('takes a parent that is not in the list as not there', () => {
  const lines = drawTree(makeNodes('c b'))
  expect(lines.map(({ graph }) => graph)).toEqual(['* '])
  expect(draw('d c', 'c gone', 'b a', 'a')).toEqual(['* d', '* c', '', '* b', '* a'])
})

test.each([2000])('draws %d snapshots with branches in linear time and depth', count => {
  const pairs = Array.from({ length: count }, (_, i) => `n${i} n${i % 10 === 9 ? Math.min(count - 1, i + 7) : i + 1}`)
  pairs[count - 1] = `n${count - 1}`
  let drawn = 0
  const ms = cpuMsDuring(() => {
    drawn = drawTree(makeNodes(...pairs)).filter(({ node }) => node).length
  })
  expect(drawn).toBe(count)
  expect(ms).toBeLessThan(500)
})

it('shows every snapshot once and every child above its parent', () => {
  const pairs = Array.from({ length: 200 }, (_, i) => `n${200 - i}${i < 199 ? ` n${1 + ((i * 7) % (199 - i))}` : ''}`)
  const ids = drawTree(makeNodes(...pairs)).flatMap(({ node }) => (node ? [node] : []))
  expect(new Set(ids.map(({ snapshot }) => snapshot.id)).size).toBe(200)
  const place = new Map(ids.map(({ snapshot }, i) => [snapshot.id, i]))
  for (const { snapshot, shownParent } of ids) {
    if (shownParent) expect(place.get(shownParent)).toBeGreaterThan(place.get(snapshot.id)!)
  }
})
