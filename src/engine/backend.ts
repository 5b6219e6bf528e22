/** Which backend keeps the snapshots. This version has one. */
import type { BackendName } from '../config/config.ts'
import { SavepointError } from '../errors/errors.ts'

/** What `auto` stands for. */
const CHOSEN = 'cas'

/** undefined when this version has it. A backend that was named is never replaced by another one in silence. */
export function backendProblem(backend: BackendName): { reason: string; fix: string } | undefined {
  if (backend === 'auto' || backend === CHOSEN) return undefined
  return {
    reason: `this version has ${CHOSEN} only`,
    fix: `Set snapshots.backend to auto or ${CHOSEN} (SAVEPOINT_BACKEND wins over it)`,
  }
}

export function refuseBackend(backend: BackendName): void {
  const problem = backendProblem(backend)
  if (!problem) return
  throw new SavepointError('unsupported', `Cannot use backend ${backend}: ${problem.reason}`, { hint: problem.fix })
}
