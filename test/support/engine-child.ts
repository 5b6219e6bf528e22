/**
 * Carries out verbs of the library in a process of its own. argv[2] is JSON: { options, nowMs, verbs: [[name, ...args]], at },
 * where `at` names a failpoint and a shell script that is run once when it is reached.
 * Prints one JSON line per verb, notice and error, and at the end the peak memory.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { open, type Savepoint, SavepointError } from '../../src/index.ts'
import { onFailpoint } from '../../src/store/failpoint.ts'

/** Without a task it only loads everything. */
const { options, nowMs, verbs, at } = JSON.parse(process.argv[2] ?? process.exit())
const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
const say = (line: object) => process.stdout.write(`${JSON.stringify(line, plain)}\n`)
const clock = nowMs === undefined ? {} : { now: () => nowMs as number }
if (at) {
  const stop = onFailpoint(at.point, () => {
    stop()
    execFileSync('sh', ['-ec', at.script], { stdio: 'ignore' })
  })
}

try {
  const savepoint = await open({ ...options, ...clock, onNotice: text => say({ notice: text }) })
  for (const [name, ...args] of verbs) {
    const verb = savepoint[name as keyof Savepoint] as (...args: unknown[]) => unknown
    say({ verb: name, result: await verb(...args) })
  }
  savepoint.close()
} catch (error) {
  const { code, message, hint } = error as SavepointError
  say({ error: { code, message, hint, isOurs: error instanceof SavepointError } })
  process.exitCode = 1
}
say({ peakBytes: peakBytes() })

/** Linux hands the peak of a parent on to the program that its child executes, so getrusage would show the parent's. */
function peakBytes(): number {
  const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : ''
  const peakKb = /^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1]
  return (peakKb ? Number(peakKb) : process.resourceUsage().maxRSS) * 1024
}
