/** What is hidden in command lines, as the configuration says. */
import { redactFlags } from '../config/config.ts'
import { defaultRedact } from '../config/default-redact.ts'
import type { RedactPatterns } from '../model/redact.ts'
import type { Context } from './context.ts'

/** The configuration is checked when it is read: these are regular expressions. */
export function redactPatterns(ctx: Context): RedactPatterns {
  const patternsOf = (isOurs: boolean) =>
    ctx.config.tracing.redact
      .filter(source => defaultRedact.includes(source) === isOurs)
      .map(source => new RegExp(source, redactFlags))
  return { quick: patternsOf(true), other: patternsOf(false) }
}
