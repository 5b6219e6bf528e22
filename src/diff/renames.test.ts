import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsDuring } from '../../test/support/cpu-time.ts'
import type { Change } from '../model/entry.ts'
import { fixtureEntry } from './fixture-entry.ts'
import { detectRenames } from './renames.ts'

const file = (content: string) => fixtureEntry({ content, size: content.length })
const gone = (path: string, content: string): Change => ({ kind: 'deleted', path, before: file(content) })
const came = (path: string, content: string): Change => ({ kind: 'added', path, after: file(content) })
const summary = (changes: Change[]) =>
  detectRenames(changes).map(({ kind, path, from }) => (kind === 'renamed' ? `${from} -> ${path}` : `${kind} ${path}`))

describe('detectRenames', () => {
  it('joins a deleted and an added file of the same content', () => {
    const [renamed] = detectRenames([gone('a', 'A'), came('b', 'A')])
    expect(renamed).toEqual({ kind: 'renamed', path: 'b', from: 'a', before: file('A'), after: file('A') })
    expect(summary([gone('a', 'A'), came('b', 'B')])).toEqual(['deleted a', 'added b'])
  })

  it('joins links of the same target, but no link with a file', () => {
    const link = fixtureEntry({ kind: 'link', target: 'A' })
    expect(
      summary([
        { kind: 'deleted', path: 'l', before: link },
        { kind: 'added', path: 'm', after: link },
      ]),
    ).toEqual(['l -> m'])
    expect(summary([{ kind: 'deleted', path: 'l', before: link }, came('m', 'A')])).toEqual(['deleted l', 'added m'])
  })

  it('leaves empty files, directories and other changes alone', () => {
    const empty = fixtureEntry({ content: 'id of nothing', size: 0 })
    const dir = fixtureEntry({ kind: 'dir', content: 'tree', size: 4 })
    const changes: Change[] = [
      { kind: 'deleted', path: 'a', before: empty },
      { kind: 'added', path: 'b', after: empty },
      { kind: 'deleted', path: 'c', before: dir },
      { kind: 'added', path: 'd', after: dir },
      { kind: 'modified', path: 'e', before: file('E'), after: file('F') },
      came('f', 'E'),
    ]
    expect(summary(changes)).toEqual(['deleted a', 'added b', 'deleted c', 'added d', 'modified e', 'added f'])
  })

  it('prefers the same name, then the nearest directory', () => {
    expect(summary([gone('x/name', 'A'), came('x/other', 'A'), came('far/away/name', 'A')])).toEqual([
      'x/name -> far/away/name',
      'added x/other',
    ])
    expect(summary([gone('a/b/c/1', 'A'), came('2', 'A'), came('a/b/d/3', 'A'), came('a/4', 'A')])).toEqual([
      'added 2',
      'added a/4',
      'a/b/c/1 -> a/b/d/3',
    ])
    expect(summary([gone('p/x', 'A'), gone('q/x', 'A'), came('q/new/x', 'A'), came('p/new/x', 'A')])).toEqual([
      'p/x -> p/new/x',
      'q/x -> q/new/x',
    ])
  })

  it('keeps every change exactly once, whatever the order', () => {
    const path = fc.stringMatching(/^[abc](\/[abc]){0,3}$/)
    const change = fc.tuple(path, fc.constantFrom('A', 'B', ''), fc.boolean())
    const list = fc.uniqueArray(change, { maxLength: 40, selector: ([name, , deleted]) => `${deleted} ${name}` })
    fc.assert(
      fc.property(list, fc.infiniteStream(fc.nat({ max: 1000 })), (items, dice) => {
        const changes = items.map(([name, content, deleted]) => (deleted ? gone(name, content) : came(name, content)))
        const out = detectRenames(changes)
        const taken = out.flatMap(({ kind, path, from }) =>
          kind === 'renamed' ? [`deleted ${from}`, `added ${path}`] : [`${kind} ${path}`],
        )
        expect(taken.sort()).toEqual(changes.map(({ kind, path }) => `${kind} ${path}`).sort())
        for (const content of ['A', 'B']) {
          const left = out.filter(one => (one.after ?? one.before)!.content === content && one.kind !== 'renamed')
          expect(new Set(left.map(one => one.kind)).size).toBeLessThanOrEqual(1)
        }
        expect(out.map(one => one.path)).toEqual(out.map(one => one.path).sort())
        const shuffled = changes.map(one => ({ one, at: dice.next().value })).sort((a, b) => a.at - b.at)
        expect(detectRenames(shuffled.map(({ one }) => one))).toEqual(out)
      }),
      { numRuns: 500 },
    )
  })

  it('takes a hundred thousand duplicates in its stride', () => {
    const many = 50_000
    const changes = Array.from({ length: many }, (_, i) => [
      gone(`old/${i % 100}/${i}`, 'same'),
      came(`new/${i % 90}/${i}${i % 2 ? 'x' : ''}`, 'same'),
    ]).flat()
    let out: ReturnType<typeof detectRenames> = []
    const ms = cpuMsDuring(() => {
      out = detectRenames(changes)
    })
    expect(ms).toBeLessThan(2000)
    expect(out.length).toBe(many)
    expect(out.find(one => one.path === 'new/0/0')?.from).toBe('old/0/0')
  })
})
