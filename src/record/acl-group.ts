/** The rights of a group beside an access list (ACL): the mode says in their place what that list allows anybody at most (its mask). */

const ACCESS_LIST = 'system.posix_acl_access'
const HEADER_BYTES = 4
const ENTRY_BYTES = 8
const GROUP_ITSELF = 4
const RIGHTS = 7

/** `xattrs`: as the addon gives them. undefined: there is no list, so that the mode says them. */
export function aclGroup(mode: number, xattrs: Buffer | undefined): number | undefined {
  const list = xattrs && attribute(xattrs, ACCESS_LIST)
  if (!list) return undefined
  for (let at = HEADER_BYTES; at + ENTRY_BYTES <= list.length; at += ENTRY_BYTES) {
    if (list.readUInt16LE(at) === GROUP_ITSELF) return list.readUInt16LE(at + 2) & (mode >> 3) & RIGHTS
  }
  return undefined
}

/** A mode for what has no access list. */
export const withGroup = (mode: number, group: number | undefined): number =>
  group === undefined ? mode : (mode & ~(RIGHTS << 3)) | (group << 3)

function attribute(xattrs: Buffer, wanted: string): Buffer | undefined {
  for (let at = 0; at < xattrs.length; ) {
    const nameEnd = at + 2 + xattrs.readUInt16LE(at)
    const valueEnd = nameEnd + 4 + xattrs.readUInt32LE(nameEnd)
    if (xattrs.toString('latin1', at + 2, nameEnd) === wanted) return xattrs.subarray(nameEnd + 4, valueEnd)
    at = valueEnd
  }
  return undefined
}
