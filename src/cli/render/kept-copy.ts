/** Where a filesystem keeps what no snapshot has captured. */
import type { KeptCopy } from '../../index.ts'
import { type Raw, rawFromShown, showPath } from '../../model/raw-path.ts'
import { quoteRaw } from '../../model/shell-quote.ts'
import type { Style } from '../style.ts'

/** `isGone`: nothing is in its place that a copy could overwrite. */
export function keptCopyText(path: Raw, { snapshot, backend, where, file }: KeptCopy, isGone: boolean, style: Style) {
  const has = `${snapshot}, which ${backend} keeps, has ${style.path(path)} as it was then`
  if (file === undefined)
    return `${has}, in ${where} (${backend === 'zfs' ? 'a `zfs clone` of that' : 'mounted, that'} shows it)`
  if (!isGone) return `${has}: ${showPath(file)}`
  // Our commands take names as they are shown, `cp` does not.
  const to = rawFromShown(style.operand(path))
  return `${has}: ${style.bold(`cp -a ${quoteRaw(file)} ${quoteRaw(to.startsWith('-') ? `./${to}` : to)}`)}`
}
