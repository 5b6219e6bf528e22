/** The mode of something that cannot get the owner or the group that it was meant for, so that nobody gets rights by that. See `set_owner` of the addon. */
import type { Entry } from '../../model/entry.ts'

const SET_IDS = 0o6000
export const SET_GROUP_ID = 0o2000

export function givenMode({ kind, mode }: Pick<Entry, 'kind' | 'mode'>, hasGroup: boolean): number {
  // With another owner a set-id bit would give the rights of that one. Of a directory it only says whose new files are.
  const own = mode & (kind === 'dir' && hasGroup ? ~(SET_IDS & ~SET_GROUP_ID) : ~SET_IDS)
  if (hasGroup || kind === 'link') return own
  // Who is in its group now was anybody before, and the other way round.
  const both = (mode >> 3) & mode & 7
  return (own & ~0o077) | (both << 3) | both
}
