/** Times of a manifest: text in UTC with nanoseconds. Trees hold 64 bits of those, from 1677 to 2262. */
const NS = 1_000_000_000n
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/
const MIN_NS = -(2n ** 63n)
const MAX_NS = 2n ** 63n - 1n

/** Files that come one after another are often of the same second. */
let lastSecond: { seconds: bigint; text: string } | undefined

/** What lies outside of what can be kept becomes the nearest time that can, as in native code. */
export const keptTime = (ns: bigint): bigint => (ns < MIN_NS ? MIN_NS : ns > MAX_NS ? MAX_NS : ns)

/** Of a time that can be kept, or the nearest. */
export function timeText(time: bigint): string {
  const ns = keptTime(time)
  const seconds = ns >= 0n ? ns / NS : (ns - NS + 1n) / NS
  const rest = String(ns - seconds * NS).padStart(9, '0')
  if (lastSecond?.seconds !== seconds)
    lastSecond = { seconds, text: new Date(Number(seconds) * 1000).toISOString().slice(0, -5) }
  return `${lastSecond.text}.${rest}Z`
}

/** Of a text that has the form. */
export function timeFromText(text: string): bigint {
  const [whole, rest] = text.slice(0, -1).split('.')
  return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(rest!)
}

/** Whether a text is a time that can be kept. */
export function isTime(text: string): boolean {
  if (!TIME.test(text)) return false
  if (Number.isNaN(Date.parse(`${text.slice(0, text.indexOf('.'))}Z`))) return false
  const ns = timeFromText(text)
  return ns >= MIN_NS && ns <= MAX_NS
}
