/**
 * Numbers as people write them: sizes, ages, durations, counts. Pure, so every face shows the same text. Sizes are
 * decimal (1 KB = 1000 B), as disks and file managers count; limits that somebody wrote keep the binary units
 * (1 KiB = 1024 B) that they were written in.
 */
const byteUnits = ['B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB']

/** "0 B", "812 B", "1.4 MB", "633 MB"; "unlimited" for Infinity. */
export function formatBytes(bytes: number): string {
  if (bytes === Number.POSITIVE_INFINITY) return 'unlimited'
  const sign = bytes < 0 ? '-' : ''
  let value = Math.round(Math.abs(bytes))
  let unit = 0
  while (unit < byteUnits.length - 1 && roundShort(value) >= 1000) {
    value /= 1000
    unit++
  }
  return `${sign}${roundShort(value)} ${byteUnits[unit]}`
}

/** No number of more characters is one that somebody wrote. */
const writtenChars = 7
const writtenUnits = ['', 'K', 'M', 'G', 'T', 'P'].flatMap((letter, power): [unit: string, factor: number][] =>
  power === 0
    ? [['B', 1]]
    : [
        [`${letter}B`, 1000 ** power],
        [`${letter}iB`, 1024 ** power],
      ],
)

/**
 * A limit from the configuration, exactly and in the unit that it was most likely written in: "1 GiB", "1.5 GiB",
 * "200 GB". What no unit makes short is rounded as measured sizes are.
 */
export function formatLimit(bytes: number): string {
  if (bytes === Number.POSITIVE_INFINITY) return 'unlimited'
  const written = writtenUnits
    .map(([unit, factor]) => ({ amount: bytes / factor, unit }))
    .filter(({ amount }) => amount >= 1 && amount === Number(amount.toFixed(2)) && `${amount}`.length <= writtenChars)
    .sort((a, b) => `${a.amount}`.length - `${b.amount}`.length)
  return written.length > 0 ? `${written[0]!.amount} ${written[0]!.unit}` : formatBytes(bytes)
}

/** One decimal below ten, none above. */
function roundShort(value: number): number {
  const tenths = Math.round(value * 10) / 10
  return tenths < 10 ? tenths : Math.round(value)
}

/** A signed size: "+12 KB", "-3 KB", "0 B". */
export function formatDelta(bytes: number): string {
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes === 0 ? 0 : bytes)
}

/** Throughput of `bytes` in `elapsedMs`: "120 MB/s". */
export function formatRate(bytes: number, elapsedMs: number): string {
  return `${formatBytes(elapsedMs > 0 ? (bytes * 1000) / elapsedMs : 0)}/s`
}

const unitFactors: Record<string, number> = { '': 1, b: 1, byte: 1, bytes: 1 }
for (const [index, letter] of ['k', 'm', 'g', 't', 'p'].entries()) {
  for (const unit of [letter, `${letter}b`]) unitFactors[unit] = 1000 ** (index + 1)
  for (const unit of [`${letter}i`, `${letter}ib`]) unitFactors[unit] = 1024 ** (index + 1)
}

/**
 * A size as people write it: 1048576, "5 GiB", "1gb", "512k" (512,000), "1.5 MB", "unlimited" (Infinity).
 * Throws an Error whose message completes "‹key› …".
 */
export function parseBytes(input: number | string): number {
  const bytes = typeof input === 'number' ? input : parseBytesText(input)
  if (bytes === Number.POSITIVE_INFINITY) return bytes
  if (Number.isNaN(bytes)) throw new Error('must be a size such as 500 MB, 5 GiB or unlimited')
  if (bytes < 0) throw new Error('must not be negative')
  if (bytes > Number.MAX_SAFE_INTEGER) throw new Error('is larger than any disk; write unlimited instead')
  if (typeof input === 'number' && !Number.isInteger(input)) throw new Error('must be a whole number of bytes')
  return Math.round(bytes)
}

function parseBytesText(text: string): number {
  const trimmed = text.trim().toLowerCase()
  if (trimmed === 'unlimited') return Number.POSITIVE_INFINITY
  const match = /^([+-]?(?:\d[\d_]*(?:\.\d+)?|\.\d+))\s*([a-z]*)$/.exec(trimmed)
  const factor = match && Object.hasOwn(unitFactors, match[2]!) ? unitFactors[match[2]!]! : Number.NaN
  // A fraction that overflows a double must not read as "unlimited".
  return match ? Math.min(Number(match[1]!.replaceAll('_', '')) * factor, Number.MAX_VALUE) : Number.NaN
}

const justNowMs = 2_000
const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const ageUnits: [name: string, ms: number][] = [
  ['year', 365 * day],
  ['month', 30 * day],
  ['day', day],
  ['hour', hour],
  ['minute', minute],
  ['second', second],
]

/** How long ago, given now minus then: "just now", "2 hours ago"; a negative difference is in the future: "in 3 minutes". */
export function formatAge(differenceMs: number): string {
  const distance = Math.abs(differenceMs)
  const unit = distance < justNowMs ? undefined : ageUnits.find(([, ms]) => distance >= ms)
  if (!unit) return 'just now'
  const amount = plural(unit[0], Math.floor(distance / unit[1]))
  return differenceMs < 0 ? `in ${amount}` : `${amount} ago`
}

/** "850 ms", "12.3 s", "2 m 05 s", "1 h 02 m". */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, Math.round(durationMs))
  if (ms < second) return `${ms} ms`
  const tenths = Math.round(ms / 100)
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`
  const seconds = Math.round(ms / second)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${twoDigits(seconds % 60)} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} m`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** "1,234"; the same in every locale; "unlimited" for Infinity. */
export function formatCount(count: number): string {
  if (count === Number.POSITIVE_INFINITY) return 'unlimited'
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** A count with its noun: "1 file", "1,234 files", "2 directories", "3 branches". */
export function plural(noun: string, count: number): string {
  return `${formatCount(count)} ${count === 1 ? noun : pluralNoun(noun)}`
}

function pluralNoun(noun: string): string {
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`
  return /(?:s|x|z|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`
}

/** "3 created, 1 deleted, 2 replaced"; '' when nothing changes. */
export function restoreCounts(files: Record<'created' | 'deleted' | 'replaced' | 'metadata', number>): string {
  const parts = [
    [files.created, 'created'],
    [files.deleted, 'deleted'],
    [files.replaced, 'replaced'],
    [files.metadata, 'with attributes put back'],
  ] as const
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${formatCount(count)} ${word}`)
    .join(', ')
}
