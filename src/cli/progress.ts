/** A line on the terminal that says how far long work is; gone when the work is done. */
import type { Progress } from '../index.ts'
import { formatBytes, formatCount, formatDuration, formatRate } from '../model/format.ts'
import { displayWidth } from './text.ts'

const appearAfterMs = 300
const redrawEveryMs = 100
/** Below this share of the work an estimate of the rest is a guess. */
const minShareForRemaining = 0.02
const barCells = 12

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
  let phase = ''
  let startedAt = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let shown = false
  return {
    update(progress) {
      const now = terminal.now()
      if (progress.phase !== phase) {
        phase = progress.phase
        startedAt = now
      }
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

/** "capturing  [#####       ] 1,234/80,000 files  12 MB/633 MB  120 MB/s  5.2 s left", as much of it as fits. */
export function progressText(progress: Progress, elapsedMs: number, columns: number): string {
  const share = shareOf(progress)
  const parts = [progress.phase]
  if (share !== undefined) {
    const full = Math.round(share * barCells)
    parts.push(`[${'#'.repeat(full)}${' '.repeat(barCells - full)}]`)
  }
  const { files, bytes, totalFiles, totalBytes } = progress
  parts.push(`${formatCount(files)}${totalFiles === undefined ? '' : `/${formatCount(totalFiles)}`} files`)
  if (bytes > 0 || totalBytes) {
    parts.push(`${formatBytes(bytes)}${totalBytes === undefined ? '' : `/${formatBytes(totalBytes)}`}`)
    parts.push(formatRate(bytes, elapsedMs))
  }
  if (share !== undefined && share >= minShareForRemaining && share < 1) {
    parts.push(`${remainingText((elapsedMs * (1 - share)) / share)} left`)
  }
  const tooLong = () => displayWidth(parts.join('  ')) > columns
  if (share !== undefined && tooLong()) parts.splice(1, 1)
  while (parts.length > 2 && tooLong()) parts.pop()
  return parts.join('  ').slice(0, Math.max(0, columns))
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
