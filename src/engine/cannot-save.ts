import { isDiskFull, SavepointError } from '../errors/errors.ts'
import type { OperationKind } from '../model/snapshot.ts'

/** The state before cannot be stored, so that nothing was changed. */
export function cannotSave(kind: OperationKind, cause: Error): SavepointError {
  const without = kind === 'rollback' ? 'say --no-safety' : '`savepoint rollback SNAP --no-safety -- PATH`'
  const [code, mend] = isDiskFull(cause)
    ? (['disk.full', 'Free some space (1 MB or more)'] as const)
    : (['io.failed', 'Make it writable'] as const)
  return new SavepointError(code, `Cannot save the state before the ${kind}: ${cause.message}`, {
    hint: `Nothing was changed. ${mend}; \`savepoint rollback SNAP --to DIR\` writes it elsewhere; or, if the present state may be lost, ${without}`,
    cause,
  })
}
