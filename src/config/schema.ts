/**
 * What one configuration source may say. Every key is optional here (defaults and merging are in config.ts), unknown
 * keys are refused at every level, and a section without content is an empty one. Messages complete "‹key› …".
 * Importing this file loads zod: code that only needs the defaults imports config.ts.
 */
import { z } from 'zod'
import { backendNames } from '../model/backend-name.ts'
import { matchWithin } from '../model/bounded-match.ts'
import { parseBytes } from '../model/format.ts'
import { archiveCompressions, type PartialConfig, redactFlags, tracerNames } from './config.ts'

export { type Config, defaultConfig } from './config.ts'

const flag = z.boolean({ error: 'must be true or false' }).optional()
const patterns = listOf(z.string({ error: 'must be text' }).min(1, { error: 'must not be empty' }))
const regexps = z
  .array(z.string({ error: 'must be text' }), { error: 'must be a list' })
  .superRefine(checkRegExps)
  .optional()

const triggers = section({
  disable_pre_run: flag,
  disable_git_commits: flag,
  disable_builds: flag,
  disable_tests: flag,
  disable_idle: flag,
  disable_guard: flag,
  disable_interval: flag,
  enable_change: flag,
  idle_threshold_seconds: wholeNumber('seconds', 1),
  build_commands: patterns,
  test_commands: patterns,
  guard_commands: patterns,
  guard_max_hold_ms: wholeNumber('milliseconds', 0),
})

const retention = section({
  max_count: limit(),
  native_max: limit(),
  delete_initial: flag,
  auto_max: limit(),
  manual_max: limit(),
})

const snapshots = section({
  disabled: flag,
  backend: oneOf(backendNames),
  archive_compression: oneOf(archiveCompressions),
  triggers,
  exclude: section({ ignore_gitignore: flag, additional: patterns, keep: patterns }),
  retention,
  auto_interval_seconds: wholeNumber('seconds', 1),
  max_file_bytes: size({ leastBytes: 1, mayBeUnlimited: true }),
  min_free_bytes: size({ leastBytes: 0, mayBeUnlimited: false }),
  max_store_bytes: size({ leastBytes: 1, mayBeUnlimited: true }),
})

const tracing = section({ disable_exec: flag, tracer: oneOf(tracerNames), redact: regexps })

export const configSchema = z.strictObject({ snapshots, tracing }, { error: notASection }) satisfies z.ZodType<
  WithNull<PartialConfig>
>

type WithNull<T> = T extends unknown[] ? T : T extends object ? { [Key in keyof T]: WithNull<T[Key]> | null } : T

function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: notASection }).nullish()
}

function notASection(): string {
  return 'must be a section with keys'
}

function listOf<Item extends z.ZodType<string>>(item: Item) {
  return z.array(item, { error: 'must be a list' }).optional()
}

function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be one of ${names.join(', ')}` }).optional()
}

function wholeNumber(unit: string, least: number) {
  const error = `must be a whole number of ${unit}, at least ${least}`
  return z.int({ error }).min(least, { error }).optional()
}

/** A count of things to keep. Zero is refused: some tools read it as "none", others as "unlimited". */
function limit() {
  const error = 'must be a whole number of at least 1, or unlimited'
  const isLimit = (value: unknown) => value === 'unlimited' || (Number.isSafeInteger(value) && (value as number) >= 1)
  return z
    .custom<number | 'unlimited'>(isLimit, { error })
    .transform(value => (value === 'unlimited' ? Number.POSITIVE_INFINITY : value))
    .optional()
}

function size(rule: { leastBytes: number; mayBeUnlimited: boolean }) {
  const input = z.union([z.number(), z.string()], { error: 'must be a size such as 500 MB or 5 GiB' })
  const parsed = input.transform((value, context): number => {
    try {
      const bytes = parseBytes(value)
      if (bytes < rule.leastBytes) throw new Error('must be more than nothing')
      if (bytes === Number.POSITIVE_INFINITY && !rule.mayBeUnlimited) throw new Error('must be a definite size')
      return bytes
    } catch (error) {
      context.addIssue((error as Error).message)
      return z.NEVER
    }
  })
  return parsed.optional()
}

/** For the patterns of one list together. */
const CHECK_MS = 1000

/** A repository's pattern may take for ever even on the empty text: it is tried in bounded time first. */
function checkRegExps(sources: string[], context: z.core.$RefinementCtx): void {
  const patterns: [item: number, pattern: RegExp][] = []
  const addIssue = (item: number, message: string) => context.addIssue({ code: 'custom', path: [item], message })
  for (const [item, source] of sources.entries()) {
    try {
      patterns.push([item, new RegExp(source, redactFlags)])
    } catch (error) {
      const reason = (error as Error).message.replace(/^Invalid regular expression: .*: /s, '')
      addIssue(item, `must be a regular expression (${reason.toLowerCase()})`)
    }
  }
  const all = patterns.map(([, pattern]) => pattern)
  if (!matchWithin(CHECK_MS, [''], all)) {
    context.addIssue('must not take seconds to match the empty text')
    return
  }
  for (const [item, pattern] of patterns)
    if (pattern.test('')) addIssue(item, 'must match some text, not the empty text')
}
