/** What is mounted inside of a directory: a snapshot of its filesystem shows what lies under that instead. And what at it. */
import { readFileSync } from 'node:fs'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'

/** Relative to the directory. Empty where the system does not tell. */
export function mountsBelow(directory: Buffer): Raw[] {
  const prefix = `${rawFromBytes(directory)}/`
  return mounts()
    .filter(({ point }) => point.startsWith(prefix))
    .map(({ point }) => point.slice(prefix.length))
}

/** A device, a dataset…; '' where nothing is mounted, or the system does not tell. */
export function mountedAt(directory: Buffer): Raw {
  const path = rawFromBytes(directory)
  // The last one hides those before it.
  return mounts().findLast(({ point }) => point === path)?.source ?? ''
}

function mounts(): { point: Raw; source: Raw }[] {
  let table: string
  try {
    table = readFileSync('/proc/self/mountinfo', 'latin1')
  } catch {
    return []
  }
  return table.split('\n').flatMap(line => {
    const fields = line.split(' ')
    const point = fields[4]
    // How many there are before the dash differs; the type comes first after it.
    const source = fields[fields.indexOf('-', 6) + 2] ?? ''
    return point === undefined ? [] : [{ point: unescaped(point), source: unescaped(source) }]
  })
}

const unescaped = (field: string): Raw =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
