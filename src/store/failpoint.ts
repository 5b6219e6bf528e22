/**
 * Named points at which a test may kill the process, as a power cut would: `SAVEPOINT_FAILPOINT=name[#hits][@ERRNO]` sends
 * SIGKILL to this process when the point is reached for the hits-th time, or throws that error instead.
 * Costs one comparison when the variable is not set.
 */
const setting = process.env.SAVEPOINT_FAILPOINT
let remaining = 0
let point = ''
let errno = ''
if (setting) {
  const match = /^(.+?)(?:#(\d+))?(?:@(E[A-Z]+))?$/.exec(setting)
  point = match?.[1] ?? ''
  remaining = Number(match?.[2] ?? 1)
  errno = match?.[3] ?? ''
}

const listeners = new Map<string, () => void>()

/** For tests in this process: calls back whenever the point is reached, until the returned function is called. */
export function onFailpoint(name: string, callback: () => void): () => void {
  listeners.set(name, callback)
  return () => void listeners.delete(name)
}

export function failpoint(name: string): void {
  if (listeners.size > 0) listeners.get(name)?.()
  if (point === '' || name !== point) return
  if (--remaining > 0) return
  if (errno === '') {
    process.kill(process.pid, 'SIGKILL')
    // SIGKILL reaches the process at its next return to user space at the latest; never go on.
    for (;;);
  }
  if (remaining === 0) throw Object.assign(new Error(`${errno}: injected at ${name}`), { code: errno })
}
