/**
 * Prints what eslogger of macOS would print of this machine: real executions and ends of all processes, seen by our ebpf
 * driver. Forks are left out, as if they had been lost. usage: eslogger-stand-in.ts CGROUP
 */
import type { TraceEvent } from '../../src/tracers/trace-event.ts'
import { HelperProcess } from './helper-process.ts'

const helper = new HelperProcess(['--driver', 'ebpf', '--cgroup', process.argv[2]!])
const pids = new Map<number, number>()
let number = 0

const print = (at: number, pid: number, event: object) => {
  const process_ = { audit_token: { pid }, executable: { path: '' } }
  console.log(JSON.stringify({ time: new Date(at).toISOString(), global_seq_num: ++number, process: process_, event }))
}

helper.onEvent = (event: TraceEvent) => {
  if (event.type === 'exec') {
    pids.set(event.id, event.pid)
    const target = { audit_token: { pid: event.pid }, ppid: event.ppid, executable: { path: event.program } }
    print(event.at, event.pid, { exec: { target, args: event.argv, cwd: { path: event.cwd }, script: null } })
  } else if (event.type === 'exit') {
    const stat = event.signal === undefined ? event.code! << 8 : event.signal === 'SIGKILL' ? 9 : 15
    print(event.at, pids.get(event.id)!, { exit: { stat } })
  }
}
process.on('SIGTERM', () => {
  helper.child.kill('SIGTERM')
  process.exit()
})
