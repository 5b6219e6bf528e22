/** A line on the terminal that says how far long work is; gone when the work is done. */
import type { Progress } from '../index.ts'
import { formatBytes, formatCount, formatDuration, formatRate } from '../model/format.ts'
import { displayWidth } from './text.ts'

const appearAfterMs = 300
const redrawEveryMs = 100
/** Below this share of the work an estimate of the rest is a guess. */
const minShareForRemaining = 0.02
const barCells = 12
/** A shorter bar says nothing. */
const minBarCells = 5

export interface ProgressLine {
  update(progress: Progress): void
  /** Takes the line away; the next update may draw it again. */
  erase(): void
}

export interface ProgressTerminal {
  write(text: string): void
  columns(): number
  now(): number
}

export const silentProgress: ProgressLine = { update() {}, erase() {} }

export function createProgress(terminal: ProgressTerminal): ProgressLine {
  let last: Progress = { phase: '', files: 0, bytes: 0 }
  let startedAt = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let shown = false
  return {
    update(progress) {
      const now = terminal.now()
      if (progress.phase !== last.phase || isAnew(progress, last)) startedAt = now
      last = progress
      if (now - startedAt < appearAfterMs || now - drawnAt < redrawEveryMs) return
      drawnAt = now
      shown = true
      terminal.write(`\r${progressText(progress, now - startedAt, terminal.columns() - 1)}\x1b[K`)
    },
    erase() {
      if (shown) terminal.write('\r\x1b[K')
      shown = false
    },
  }
}

/** Much less than before: the same work once more, as the capture after a run. What was between is none of its time. */
const isAnew = (now: Progress, last: Progress): boolean => now.files * 2 < last.files || now.bytes * 2 < last.bytes

/** A part of the line, and the room that it may need later in the same phase. */
interface Part {
  text: string
  room: number
}

/**
 * "capturing  [#####       ]  1,234/80,000 files  12 MB/633 MB  120 MB/s  5 s left", as much of it as fits. What fits is
 * decided by the widest that each part may become, so that nothing comes and goes as the numbers grow; the bar takes
 * what is left over.
 */
export function progressText(progress: Progress, elapsedMs: number, columns: number): string {
  const { phase, files, bytes, totalFiles, totalBytes } = progress
  const share = shareOf(progress)
  const parts = [partOf(phase)]
  const outOf = (total: string | undefined) => (total === undefined ? '' : `/${total}`)
  const ofFiles = totalFiles === undefined ? undefined : formatCount(totalFiles)
  const filesText = `${formatCount(files)}${outOf(ofFiles)} files`
  parts.push(partOf(filesText, ofFiles === undefined ? 0 : 2 * ofFiles.length + '/ files'.length))
  if (bytes > 0 || totalBytes) {
    const ofBytes = outOf(totalBytes === undefined ? undefined : formatBytes(totalBytes))
    parts.push(partOf(`${formatBytes(bytes)}${ofBytes}`, widestBytes.length + ofBytes.length))
    parts.push(partOf(formatRate(bytes, elapsedMs), widestBytes.length + '/s'.length))
  }
  if (share !== undefined) {
    const isKnown = share >= minShareForRemaining && share < 1
    const remaining = isKnown ? `${remainingText((elapsedMs * (1 - share)) / share)} left` : ''
    parts.push(partOf(remaining, widestRemaining.length))
  }
  const room = () => parts.reduce((sum, part) => sum + gap.length + part.room, -gap.length)
  while (parts.length > 2 && room() > columns) parts.pop()
  const cells = Math.min(barCells, columns - room() - gap.length - '[]'.length)
  if (share !== undefined && cells >= minBarCells) parts.splice(1, 0, partOf(barText(share, cells)))
  const text = parts.flatMap(part => (part.text === '' ? [] : [part.text])).join(gap)
  return text.slice(0, Math.max(0, columns))
}

const gap = '  '
const widestBytes = '999 MB'
const widestRemaining = '9 m 59 s left'

const partOf = (text: string, room = 0): Part => ({ text, room: Math.max(room, displayWidth(text)) })

function barText(share: number, cells: number): string {
  const full = Math.round(share * cells)
  return `[${'#'.repeat(full)}${' '.repeat(cells - full)}]`
}

/** Whole seconds: an estimate has no tenths. */
function remainingText(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000))
  return seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000)
}

/** How much is done, 0 to 1; undefined when the whole is not known. */
function shareOf({ files, bytes, totalFiles, totalBytes }: Progress): number | undefined {
  const shares = []
  if (totalFiles) shares.push(files / totalFiles)
  if (totalBytes) shares.push(bytes / totalBytes)
  return shares.length === 0 ? undefined : Math.min(1, Math.max(0, Math.min(...shares)))
}
