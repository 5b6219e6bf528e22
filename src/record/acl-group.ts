/** The rights of a group beside an access list (ACL): the mode says in their place what that list allows anybody at most (its mask). */

const ACCESS_LIST = 'system.posix_acl_access'
const HEADER_BYTES = 4
const ENTRY_BYTES = 8
const GROUP_ITSELF = 4
const RIGHTS = 7

/** `xattrs`: as the addon gives them. undefined: there is no list, so that the mode says them. */
export function aclGroup(mode: number, xattrs: Buffer | undefined): number | undefined {
  const rights = xattrs && rightsOfGroup(xattrs)
  return rights && rights.readUInt16LE(0) & (mode >> 3) & RIGHTS
}

/** The same with a list by which its group has these rights, of those that the mode allows. */
export function withAclGroup(mode: number, xattrs: Buffer, group: number): Buffer {
  const changed = Buffer.from(xattrs)
  const rights = rightsOfGroup(changed)
  rights?.writeUInt16LE((rights.readUInt16LE(0) & ~(mode >> 3)) | group)
  return changed
}

/** The same without a list; undefined when nothing is left. */
export function withoutAcl(xattrs: Buffer): Buffer | undefined {
  const { start, end } = attribute(xattrs, ACCESS_LIST) ?? { start: 0, end: 0 }
  const rest = Buffer.concat([xattrs.subarray(0, start), xattrs.subarray(end)])
  return rest.length > 0 ? rest : undefined
}

/** A mode for what has no access list. */
export const withGroup = (mode: number, group: number | undefined): number =>
  group === undefined ? mode : (mode & ~(RIGHTS << 3)) | (group << 3)

/** Where the list has them. */
function rightsOfGroup(xattrs: Buffer): Buffer | undefined {
  const list = attribute(xattrs, ACCESS_LIST)?.value
  if (!list) return undefined
  for (let at = HEADER_BYTES; at + ENTRY_BYTES <= list.length; at += ENTRY_BYTES) {
    if (list.readUInt16LE(at) === GROUP_ITSELF) return list.subarray(at + 2, at + 4)
  }
  return undefined
}

function attribute(xattrs: Buffer, wanted: string): { start: number; end: number; value: Buffer } | undefined {
  for (let start = 0; start < xattrs.length; ) {
    const nameEnd = start + 2 + xattrs.readUInt16LE(start)
    const end = nameEnd + 4 + xattrs.readUInt32LE(nameEnd)
    if (xattrs.toString('latin1', start + 2, nameEnd) === wanted)
      return { start, end, value: xattrs.subarray(nameEnd + 4, end) }
    start = end
  }
  return undefined
}
