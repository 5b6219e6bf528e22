/** The process that records what a run has left running: it has the timeline of the workspace open. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { vi } from 'vitest'

const NAME = 'savepoint-left'

/** `run`: of which, where others may still be at it. */
export const leftRecorder = (home: string, run = ''): Promise<string> =>
  vi.waitUntil(() => readdirSync('/proc').find(pid => /^\d+$/.test(pid) && isRecorder(pid, home, run)), {
    timeout: 60_000,
    interval: 20,
  }) as Promise<string>

function isRecorder(pid: string, home: string, run: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== NAME) return false
    const files = readdirSync(`/proc/${pid}/fd`).map(fd => readlinkSync(`/proc/${pid}/fd/${fd}`))
    return files.some(file => file.startsWith(home) && file.includes(run))
  } catch {
    // It ends, or opens and closes files.
    return false
  }
}
