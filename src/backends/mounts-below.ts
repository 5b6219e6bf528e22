/** What is mounted inside of a directory: a snapshot of its filesystem shows what lies under that instead. */
import { readFileSync } from 'node:fs'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'

/** Relative to the directory. Empty where the system does not tell. */
export function mountsBelow(directory: Buffer): Raw[] {
  const prefix = `${rawFromBytes(directory)}/`
  return mountPoints()
    .filter(path => path.startsWith(prefix))
    .map(path => path.slice(prefix.length))
}

function mountPoints(): Raw[] {
  let table: string
  try {
    table = readFileSync('/proc/self/mountinfo', 'latin1')
  } catch {
    return []
  }
  return table.split('\n').flatMap(line => {
    const point = line.split(' ')[4]
    return point === undefined
      ? []
      : [point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))]
  })
}
