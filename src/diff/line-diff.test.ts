import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diffLines, type LineDiff, maxComparedLines } from './line-diff.ts'
import type { Lines } from './lines.ts'
import { markChanges } from './myers.ts'

const text = (value: string) => Buffer.from(value, 'latin1')
const hasGit = spawnSync('git', ['--version']).status === 0

/** Few different lines, so that much is shared in many ways. */
const someLines = fc
  .array(fc.constantFrom('a\n', 'b\n', '  c\n', '\n', 'd\r\n', '\xff\xfe\n', 'x\0y\n'), { maxLength: 40 })
  .chain(lines => fc.constantFrom('', 'end', '\r').map(last => lines.join('') + last))

describe('diffLines', () => {
  it('gives hunks that turn the one content into the other', () => {
    fc.assert(
      fc.property(someLines, someLines, (before, after) => {
        const diff = diffLines(text(before), text(after))
        expectCorrect(diff, before, after)
        expect(diff.coarse).toBe(false)
      }),
      { numRuns: 3000 },
    )
  })

  it('is minimal: as many lines are shared as the longest common subsequence has', () => {
    fc.assert(
      fc.property(someLines, someLines, (before, after) => {
        const diff = diffLines(text(before), text(after))
        const kept = diff.before.count - changedLines(diff).deleted
        expect(kept).toBe(longestCommon(linesOf(diff.before), linesOf(diff.after)))
      }),
      { numRuns: 1000 },
    )
  })

  it('distinguishes a missing final line feed, and carriage returns', () => {
    expect(diffLines(text('a\nb'), text('a\nb\n')).hunks).toEqual([
      { beforeStart: 1, beforeEnd: 2, afterStart: 1, afterEnd: 2 },
    ])
    expect(diffLines(text('a\r\n'), text('a\n')).hunks).toHaveLength(1)
    expect(diffLines(text(''), text('')).hunks).toEqual([])
    expect(diffLines(text('same\n'), text('same\n')).hunks).toEqual([])
  })

  it('puts a moved block where its least indented line begins', () => {
    const block = (name: string) => `function ${name}() {\n  run()\n}\n\n`
    const diff = diffLines(text(block('a') + block('c')), text(block('a') + block('b') + block('c')))
    expect(diff.hunks).toEqual([{ beforeStart: 4, beforeEnd: 4, afterStart: 4, afterEnd: 8 }])
  })

  it('is fast on a long file with few edits', () => {
    const lines = Array.from({ length: 100_000 }, (_, i) => `line number ${i} with some words ${i % 97}\n`)
    const before = text(lines.join(''))
    for (let i = 50; i < lines.length; i += 2000) lines[i] = `edited ${i}\n`
    lines.splice(30_000, 3, 'new\n')
    const after = text(lines.join(''))
    const tries = Array.from({ length: 6 }, () => timed(() => diffLines(before, after)))
    expect(tries[0]!.diff.hunks.length).toBe(51)
    // 55 ms when nobody else uses the caches; the promise is 100, the rest is for a loaded machine.
    expect(Math.min(...tries.map(({ ms }) => ms))).toBeLessThan(200)
  })

  const random = randomFrom(7)
  const many = 100_000
  const shuffledA = Array.from({ length: many }, (_, i) => `${i}\n`).sort(() => random() - 0.5)
  const pathological: Record<string, () => [string, string]> = {
    'two letters at random': () => [letters(many, 2, 1), letters(many, 2, 2)],
    'fifty letters at random': () => [letters(many, 50, 3), letters(many, 50, 4)],
    'all different': () => [numbers('a'), numbers('b')],
    reversed: () => [numbers(''), linesIn(numbers('')).reverse().join('')],
    shuffled: () => [numbers(''), shuffledA.join('')],
    'one line a million times, with others between': () => [
      'same\n'.repeat(1_000_000),
      'x\nsame\nsame\nsame\n'.repeat(250_000),
    ],
    'a million letters': () => [letters(1_000_000, 3, 5), letters(1_000_000, 3, 6)],
  }
  for (const [name, make] of Object.entries(pathological)) {
    it(`stays within its bounds: ${name}`, () => {
      const [before, after] = make()
      const { diff, ms } = timed(() => diffLines(text(before), text(after)))
      expectCorrect(diff, before, after)
      // About 1 s on an idle machine; the promise is 2 s, the rest is for a loaded one.
      expect(ms).toBeLessThan(4000)
    }, 20_000)
  }

  it('replaces everything between the common ends when there are too many lines to compare', () => {
    const half = maxComparedLines / 2
    const diff = diffLines(text(`a\n${'\n'.repeat(half + 1)}`), text(`a\n${'b\n'.repeat(half)}`))
    expect(diff.hunks).toEqual([{ beforeStart: 1, beforeEnd: half + 2, afterStart: 1, afterEnd: half + 1 }])
    expect(diff.coarse).toBe(true)
  })

  it('is correct with any work limit', () => {
    const ids = fc.array(fc.nat({ max: 6 }), { maxLength: 60 })
    fc.assert(
      fc.property(ids, ids, fc.nat({ max: 300 }), (left, right, limit) => {
        const marks = markChanges(Int32Array.from(left), Int32Array.from(right), limit)
        const kept = left.filter((_, i) => marks.deleted[i] === 0)
        expect(right.filter((_, i) => marks.inserted[i] === 0)).toEqual(kept)
      }),
      { numRuns: 3000 },
    )
  })

  it.skipIf(!hasGit)('changes hardly more lines than git does (skipped without git)', () => {
    const root = mkdtempSync(join(tmpdir(), 'savepoint-diff-'))
    try {
      const random = randomFrom(11)
      let ours = 0
      mkdirSync(join(root, 'a'))
      mkdirSync(join(root, 'b'))
      for (let file = 0; file < 40; file++) {
        const before = Array.from({ length: 400 }, () => `${Math.floor(random() * (file < 20 ? 40 : 4000))}\n`)
        const after = before.flatMap(line => {
          const dice = random()
          return dice < 0.05 ? [] : dice < 0.1 ? ['new\n', line] : dice < 0.15 ? [`${random()}\n`] : [line]
        })
        writeFileSync(join(root, 'a', `${file}`), before.join(''))
        writeFileSync(join(root, 'b', `${file}`), after.join(''))
        const { deleted, inserted } = changedLines(diffLines(text(before.join('')), text(after.join(''))))
        ours += deleted + inserted
      }
      const git = spawnSync('git', ['diff', '--no-index', '--numstat', 'a', 'b'], { cwd: root, encoding: 'utf8' })
      const rows = [...git.stdout.matchAll(/^(\d+)\t(\d+)\t/gm)]
      const theirs = rows.reduce((sum, row) => sum + Number(row[1]) + Number(row[2]), 0)
      expect(rows).toHaveLength(40)
      expect(ours).toBeLessThanOrEqual(theirs * 1.3)
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})

/** Without an `expect` per hunk: there may be hundreds of thousands. */
function expectCorrect(diff: LineDiff, before: string, after: string): void {
  const out: string[] = []
  const problems: string[] = []
  let at = 0
  for (const [i, hunk] of diff.hunks.entries()) {
    if (hunk.beforeEnd <= hunk.beforeStart && hunk.afterEnd <= hunk.afterStart) problems.push(`hunk ${i} is empty`)
    if (i > 0 && hunk.beforeStart <= at) problems.push(`hunk ${i} touches the one before`)
    for (; at < hunk.beforeStart; at++) out.push(lineAt(diff.before, at))
    if (out.length !== hunk.afterStart) problems.push(`hunk ${i} is at ${out.length}, not at ${hunk.afterStart}`)
    for (let line = hunk.afterStart; line < hunk.afterEnd; line++) out.push(lineAt(diff.after, line))
    at = hunk.beforeEnd
  }
  for (; at < diff.before.count; at++) out.push(lineAt(diff.before, at))
  if (out.join('') !== after) problems.push('does not give the new content')
  if (linesOf(diff.before).join('') !== before) problems.push('does not know the old content')
  expect(problems.slice(0, 5)).toEqual([])
}

/** The bytes of one line, one character per byte, with its line feed. */
const lineAt = (lines: Lines, line: number): string =>
  lines.bytes.toString('latin1', lines.starts[line]!, lines.starts[line + 1]!)

const linesOf = (lines: Lines) => Array.from({ length: lines.count }, (_, i) => lineAt(lines, i))
const linesIn = (value: string) => value.match(/[^\n]*\n/g)!
const numbers = (suffix: string) => Array.from({ length: 100_000 }, (_, i) => `${i}${suffix}\n`).join('')

function changedLines({ hunks }: LineDiff) {
  let deleted = 0
  let inserted = 0
  for (const hunk of hunks) {
    deleted += hunk.beforeEnd - hunk.beforeStart
    inserted += hunk.afterEnd - hunk.afterStart
  }
  return { deleted, inserted }
}

function longestCommon(a: string[], b: string[]): number {
  let row = new Array<number>(b.length + 1).fill(0)
  for (const left of a) {
    const next = [0]
    for (const [j, right] of b.entries()) next.push(left === right ? row[j]! + 1 : Math.max(row[j + 1]!, next[j]!))
    row = next
  }
  return row.at(-1)!
}

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function letters(count: number, kinds: number, seed: number): string {
  const random = randomFrom(seed)
  let out = ''
  for (let i = 0; i < count; i++) out += `${Math.floor(random() * kinds)}\n`
  return out
}

/** Processor time: what the work costs, not what else the machine was doing. */
function timed(work: () => LineDiff): { diff: LineDiff; ms: number } {
  const start = process.cpuUsage()
  const diff = work()
  const { user, system } = process.cpuUsage(start)
  return { diff, ms: (user + system) / 1000 }
}
