/** Which programs are to be held at their beginning, as the helper understands it (native/helper/holds.h). */
import { suspects } from '../model/command-kind.ts'
import { programName } from '../model/command-pattern.ts'
import type { Context } from './context.ts'

/** Undefined: none are. */
export function heldPrograms(ctx: Context): { names: string[]; maxMs: number } | undefined {
  const { disabled, triggers } = ctx.config.snapshots
  if (disabled || triggers.disable_guard) return undefined
  const own = triggers.guard_commands.map(programName)
  const names = own.some(name => name === undefined || /[*,=/?]/.test(name))
    ? ['*']
    : [...suspects, ...(own as string[])]
  return { names, maxMs: triggers.guard_max_hold_ms }
}
