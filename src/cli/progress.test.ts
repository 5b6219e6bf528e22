import { expect, it } from 'vitest'
import { createProgress, progressText } from './progress.ts'

const state = { phase: 'restoring', files: 1234, bytes: 50_000_000, totalFiles: 4936, totalBytes: 200_000_000 }

it('shows files, bytes, rate and the remaining time', () => {
  expect(progressText(state, 1000, 120)).toBe(
    'restoring  [###         ]  1,234/4,936 files  50 MB/200 MB  50 MB/s  3 s left',
  )
})

it('does without totals', () => {
  expect(progressText({ phase: 'capturing', files: 7, bytes: 0 }, 1000, 80)).toBe('capturing  7 files')
  expect(progressText({ phase: 'capturing', files: 7, bytes: 2000 }, 500, 80)).toBe('capturing  7 files  2 KB  4 KB/s')
})

it('shortens the bar, drops it, then the end, to fit', () => {
  expect(progressText(state, 1000, 80)).toBe(
    'restoring  [##      ]  1,234/4,936 files  50 MB/200 MB  50 MB/s  3 s left',
  )
  expect(progressText(state, 1000, 72)).toBe('restoring  1,234/4,936 files  50 MB/200 MB  50 MB/s  3 s left')
  expect(progressText(state, 1000, 45)).toBe('restoring  1,234/4,936 files  50 MB/200 MB')
  expect(progressText(state, 1000, 12)).toHaveLength(12)
  expect(progressText(state, 1000, 0)).toBe('')
})

it('shows the same parts from the first line of a phase to the last', () => {
  const partsOf = (text: string) =>
    text
      .replace(/\[[# ]*\]/, 'bar')
      .replace(/\d+/g, '')
      .split('  ').length
  const tree = { phase: 'saving the state before', totalFiles: 80_000, totalBytes: 633_000_000 }
  expect(progressText({ ...tree, phase: 'capturing', files: 1, bytes: 1 }, 1000, 79)).toContain('[')
  for (const columns of [60, 70, 80, 90, 100, 120]) {
    const texts = Array.from({ length: 999 }, (_, i) => {
      const done = { files: 80 * (i + 1), bytes: 633_000 * (i + 1) }
      return progressText({ ...tree, ...done }, 40 * (i + 1), columns)
    })
    expect(Math.max(...texts.map(text => text.length))).toBeLessThanOrEqual(columns)
    expect(new Set(texts.map(text => text.includes('['))).size, `bar at ${columns}`).toBe(1)
    // The remaining time is only told once it can be.
    expect(new Set(texts.slice(20).map(partsOf)).size, `parts at ${columns}`).toBe(1)
  }
})

function terminal() {
  const shown = { text: '', now: 0 }
  const write = (text: string) => {
    shown.text += text
  }
  const line = createProgress({ write, columns: () => 80, now: () => shown.now })
  return { shown, line }
}

it('appears after 300 ms, redraws at most every 100 ms, and erases itself', () => {
  const { shown, line } = terminal()
  const at = (now: number) => {
    shown.text = ''
    shown.now = now
    line.update(state)
    return shown.text
  }
  expect(at(0)).toBe('')
  expect(at(299)).toBe('')
  expect(at(300)).toMatch(/^\rrestoring .*\x1b\[K$/)
  expect(at(350)).toBe('')
  expect(at(400)).not.toBe('')
  shown.text = ''
  line.erase()
  expect(shown.text).toBe('\r\x1b[K')
  shown.text = ''
  line.erase()
  expect(shown.text).toBe('')
})

it('leaves a terminal alone when the work was short', () => {
  const { shown, line } = terminal()
  line.update(state)
  line.erase()
  expect(shown.text).toBe('')
})

it('counts the time of each phase on its own', () => {
  const { shown, line } = terminal()
  line.update(state)
  shown.now = 1000
  line.update({ ...state, phase: 'verifying' })
  expect(shown.text).toBe('')
})

it('the same work once more begins its time anew: an hour between is not in the rate', () => {
  let now = 0
  const written: string[] = []
  const line = createProgress({ write: text => void written.push(text), columns: () => 80, now: () => now })
  const work = (from: number) => {
    for (const share of [0.1, 0.5, 1]) {
      now = from + 1000 * share
      line.update({ phase: 'capturing', files: 100 * share, bytes: 1e6 * share })
    }
  }
  work(0)
  line.erase()
  const hour = 3_600_000
  work(hour)
  expect(written.at(-1)).toMatch(/100 files {2}1 MB {2}1(\.\d)? MB\/s/)
})
