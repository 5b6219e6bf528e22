/** Files that are captured although git ignores them are often secret: what leaves the machine leaves them out unless asked. */
import { parseLines } from '../files/ignore-list.ts'
import { nameOf, parentOf, type Raw, rawFromText } from '../model/raw-path.ts'

/** Whether a path matches the patterns of `exclude.keep`, which are relative to the target. */
export function keptMatcher(patterns: string[]): (path: Raw) => boolean {
  const list = parseLines(patterns.map(rawFromText))
  return path => {
    const dir = parentOf(path)
    const pattern = list.find(nameOf(path), false, dir === '' ? '' : `${dir}/`, path.split('/').length)
    return pattern !== undefined && !pattern.negative
  }
}
