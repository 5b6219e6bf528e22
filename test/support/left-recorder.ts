/** The process that records what a run has left running: it has the timeline of the workspace open. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { vi } from 'vitest'

const NAME = 'savepoint-left'

export const leftRecorder = (home: string): Promise<string> =>
  vi.waitUntil(() => readdirSync('/proc').find(pid => /^\d+$/.test(pid) && isRecorder(pid, home)), {
    timeout: 60_000,
    interval: 20,
  }) as Promise<string>

function isRecorder(pid: string, home: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== NAME) return false
    return readdirSync(`/proc/${pid}/fd`).some(fd => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(home))
  } catch {
    // It ends, or opens and closes files.
    return false
  }
}
