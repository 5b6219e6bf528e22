/**
 * Named points at which a test may kill the process, as a power cut would: `SAVEPOINT_FAILPOINT=name[#hits][@ERRNO]` sends
 * SIGKILL to this process when the point is reached for the hits-th time, or throws that error instead; `name[#hits]~FILE`
 * waits there, from then on, until the file exists (only at points that can wait). Several are separated by commas.
 * Costs one comparison when the variable is not set.
 */
import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

const LOOK_AGAIN_MS = 5

interface Planned {
  remaining: number
  errno: string | undefined
  until: string | undefined
}

const planned = new Map<string, Planned>()
for (const setting of (process.env.SAVEPOINT_FAILPOINT ?? '').split(',')) {
  const [, name, hits, errno, until] = /^([^#@~]+)(?:#(\d+))?(?:@(E[A-Z]+)|~(.+))?$/.exec(setting) ?? []
  if (name) planned.set(name, { remaining: Number(hits ?? 1), errno, until })
}

const listeners = new Map<string, () => unknown>()

/**
 * For tests in this process: calls back whenever the point is reached, until the returned function is called. A point
 * that can wait waits for what it returns.
 */
export function onFailpoint(name: string, callback: () => unknown): () => void {
  listeners.set(name, callback)
  return () => void listeners.delete(name)
}

export function failpoint(name: string): void {
  if (listeners.size > 0) listeners.get(name)?.()
  if (planned.size === 0) return
  const plan = planned.get(name)
  if (!plan || plan.until !== undefined || --plan.remaining > 0) return
  if (plan.errno === undefined) {
    process.kill(process.pid, 'SIGKILL')
    // SIGKILL reaches the process at its next return to user space at the latest; never go on.
    for (;;);
  }
  if (plan.remaining === 0) throw Object.assign(new Error(`${plan.errno}: injected at ${name}`), { code: plan.errno })
}

/** A point at which work can also wait; undefined when nobody wants that. */
export function pausepoint(name: string): Promise<unknown> | undefined {
  if (listeners.size > 0 && listeners.has(name)) return Promise.resolve(listeners.get(name)!())
  const plan = planned.size > 0 ? planned.get(name) : undefined
  return plan?.until === undefined || --plan.remaining > 0 ? undefined : untilThere(plan.until)
}

async function untilThere(file: string): Promise<void> {
  while (!existsSync(file)) await pause(LOOK_AGAIN_MS)
}
