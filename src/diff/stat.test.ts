import { describe, expect, it } from 'vitest'
import { fixtureEntry } from './fixture-entry.ts'
import { type FileStat, formatStat, formatStatSummary, statOf } from './stat.ts'

const stat = (path: string, insertions: number, deletions: number): FileStat => ({ path, insertions, deletions })

describe('statOf', () => {
  it('counts lines, and sizes where lines make no sense', () => {
    const file = (text: string) => fixtureEntry({ content: `id of ${text}`, size: text.length })
    const change = { path: 'x', before: file('a\nb\n'), after: file('a\nc\nd') }
    const contents = { beforeContent: Buffer.from('a\nb\n'), afterContent: Buffer.from('a\nc\nd') }
    expect(statOf({ ...change, ...contents })).toEqual(stat('x', 2, 1))
    expect(statOf(change)?.uncounted).toEqual({ why: 'unavailable', beforeBytes: 4, afterBytes: 5 })
    expect(statOf({ ...change, ...contents, afterContent: Buffer.from('\0') })?.uncounted?.why).toBe('binary')
  })

  it('has nothing to say about directories', () => {
    expect(statOf({ path: 'd', after: fixtureEntry({ kind: 'dir' }) })).toBeUndefined()
  })
})

describe('formatStat', () => {
  it('scales the graph and shortens names to the width', () => {
    const long = `${'deep/'.repeat(30)}name`
    const lines = formatStat([stat(long, 1000, 10), stat('a', 1, 1)], { width: 60 }).split('\n')
    expect(lines[0]).toMatch(/^ \.\.\.(\/deep)+\/name +\| 1010 \++-+$/)
    expect(lines[1]).toMatch(/^ a +\| {4}2 \+-$/)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60)
  })

  it('colours the graph', () => {
    expect(formatStat([stat('a', 2, 1)], { colour: true })).toContain(' a | 3 \x1b[32m++\x1b[m\x1b[31m-\x1b[m\n')
  })

  it('tells content that was not available from binary content', () => {
    const uncounted = { why: 'unavailable', beforeBytes: 1, afterBytes: 2 } as const
    expect(formatStat([{ ...stat('a', 0, 0), uncounted }])).toContain(' a | n/a 1 -> 2 bytes\n')
  })

  it('sums up in the singular and the plural, and leaves out what is zero', () => {
    expect(formatStat([])).toBe('')
    expect(formatStatSummary([])).toBe('0 files changed')
    expect(formatStatSummary([stat('a', 1, 0)])).toBe('1 file changed, 1 insertion(+)')
    expect(formatStatSummary([stat('a', 0, 2), stat('b', 0, 0)])).toBe('2 files changed, 2 deletions(-)')
    expect(formatStatSummary([stat('a', 0, 0)])).toBe('1 file changed, 0 insertions(+), 0 deletions(-)')
    expect(formatStatSummary([stat('a', 9, 2), stat('b', 1, 0), stat('c', 0, 0)])).toBe(
      '3 files changed, 10 insertions(+), 2 deletions(-)',
    )
  })
})
