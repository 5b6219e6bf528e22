/** Whether this process may add and remove entries of a directory, or could make that so because the directory is its own. */
import { readFileSync } from 'node:fs'
import type { Entry } from '../../model/entry.ts'

const CAP_DAC_OVERRIDE = 1n << 1n
const GROUP_WRITE = 0o020
const OTHERS_WRITE = 0o002

const user = process.geteuid?.() ?? 0
const groups = new Set([process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])])
const isPrivileged = overridesPermissions()

export function mayChangeDir(dir: Entry): boolean {
  if (isPrivileged || dir.uid === user) return true
  return (dir.mode & (groups.has(dir.gid) ? GROUP_WRITE : OTHERS_WRITE)) !== 0
}

/** Root may lack the capability, in a container for example. */
function overridesPermissions(): boolean {
  try {
    const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8'))
    if (effective) return (BigInt(`0x${effective[1]}`) & CAP_DAC_OVERRIDE) !== 0n
  } catch {}
  return user === 0
}
