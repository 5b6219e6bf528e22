import { readFileSync } from 'node:fs'

/** When this machine was started, in full seconds; 0 where that cannot be told. */
export function bootTime(): number {
  try {
    const [, seconds] = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1')) ?? []
    return Number(seconds ?? 0) * 1000
  } catch {
    return 0
  }
}
