/** Moments as people write them. */

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/**
 * How long ago ("90s", "10m", "2h", "1d", "3w"), or a date with or without a time, ISO 8601; without a zone it is local time,
 * as the clock on the wall has it. Undefined when it is neither.
 */
export function parseMoment(text: string, now: number): number | undefined {
  const [, amount, unit] = /^(\d{1,9})\s?([smhdw])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * unitMs[unit!]!
  const [, date, time] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?))?$/.exec(text) ?? []
  if (date === undefined) return undefined
  const at = Date.parse(`${date}T${time ?? '00:00'}`)
  return Number.isNaN(at) ? undefined : at
}
