/**
 * The list of `zfs diff -FH`: one line for each object that differs, by the names that its dataset is mounted under. zfs-fuse has
 * no such command, so only its documented format could be tried: whatever is not exactly that counts as "anything may differ".
 */
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { Differing } from './native-backend.ts'

const RENAMED = 'R'
const KINDS = new Set(['M', '+', '-', RENAMED])

/** undefined when a line is not understood. */
export function differingInZfs(list: Buffer, mountpoint: string): Differing | undefined {
  const text = list.toString('latin1')
  // Other characters than printable ones are written in octal, in ways that differ between versions; attributes of a file may
  // be told below a name that it does not have.
  if (text.includes('\\') || text.includes('<xattrdir>')) return undefined
  const root = `${Buffer.from(mountpoint).toString('latin1')}/`
  const differing: Differing = { dirs: new Set(), moved: new Set() }
  for (const line of text.split('\n').filter(Boolean)) {
    const [kind, type, ...paths] = line.split('\t')
    const names = paths.map(path => within(root, path))
    const isWhole = names.length === (kind === RENAMED ? 2 : 1) && names.every(name => name !== undefined)
    if (!KINDS.has(kind!) || type === undefined || !isWhole) return undefined
    for (const name of names as Raw[]) {
      differing.dirs.add(name)
      if (name === '') continue
      differing.dirs.add(parentOf(name))
      if (kind === RENAMED) differing.moved.add(name)
    }
  }
  return differing
}

function within(root: string, path: string): Raw | undefined {
  if (!`${path}/`.startsWith(root)) return undefined
  return path.slice(root.length).replace(/\/$/, '')
}
