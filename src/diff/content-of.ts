import type { Change } from '../model/entry.ts'
import type { ContentChange } from './content-change.ts'

/** Where the bytes of a change come from. */
export interface Contents {
  content(change: Change, side: 'before' | 'after'): Buffer | undefined
}

/** Reads only what has to be compared: equal contents and links need no bytes. */
export function contentOf(diff: Contents, change: Change): ContentChange {
  const { path, from, before, after } = change
  const content: ContentChange = { path, from, before, after }
  const same = before?.kind === 'file' && after?.kind === 'file' && before.content === after.content
  if (same) return content
  if (before?.kind === 'file') content.beforeContent = diff.content(change, 'before')
  if (after?.kind === 'file') content.afterContent = diff.content(change, 'after')
  return content
}
