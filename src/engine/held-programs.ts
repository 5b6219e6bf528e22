/** Which programs are to be held at their beginning, as the helper understands it (native/helper/holds.h). */
import { suspects } from '../model/command-kind.ts'
import { programName } from '../model/command-pattern.ts'
import { shells } from '../model/command-words.ts'
import type { Context } from './context.ts'

/** Undefined: none are. */
export function heldPrograms(ctx: Context): { names: string[]; maxMs: number } | undefined {
  const { disabled, triggers } = ctx.config.snapshots
  if (disabled || triggers.disable_guard) return undefined
  const own = triggers.guard_commands.map(programName)
  const names = own.some(name => name === undefined || /[*,=/?]/.test(name))
    ? ['*']
    : [...suspects, ...(own as string[]), ...withScripts(own as string[])]
  return { names, maxMs: triggers.guard_max_hold_ms }
}

/** Those that are given one of them as a script: `bash tools/wipe`, `node tools/wipe.js`. */
function withScripts(names: readonly string[]): string[] {
  if (names.length === 0) return []
  const scripts = names.flatMap(name => [name, `${name}.js`, `${name}.mjs`, `${name}.cjs`])
  return [
    ...shells.map(shell => `${shell}?${names.join('/')}`),
    ...['node', 'nodejs', 'bun', 'deno'].map(program => `${program}?${scripts.join('/')}`),
  ]
}
