/** What something costs, whatever else the machine is doing: processor time, not time. */
import { spawnSync } from 'node:child_process'

/** Of a command: its process and its children. */
export function cpuMsOf(command: string, args: string[], options: { cwd: string; env?: NodeJS.ProcessEnv }): number {
  const script = '"$@" >/dev/null || exit; times'
  const { status, stdout } = spawnSync('sh', ['-c', script, 'sh', command, ...args], { ...options, encoding: 'utf8' })
  // Two lines: of the shell, and of what it started; each is user and system time as 0m0.05s.
  const times = [...stdout.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds),
  )
  if (status !== 0 || times.length !== 4) throw new Error(`cannot measure ${command}: ${status} ${stdout}`)
  return (times[2]! + times[3]!) * 1000
}

/** Of work in this process. */
export function cpuMsDuring(work: () => void): number {
  const start = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}
