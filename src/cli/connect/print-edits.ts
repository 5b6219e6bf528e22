import { unifiedDiffBytes } from '../../diff/unified.ts'
import { blankEntry } from '../../model/entry.ts'
import { rawFromText } from '../../model/raw-path.ts'
import type { Context } from '../context.ts'
import type { SettingsEdit } from './edit-settings.ts'

/** As a patch of the settings. */
export function printEdits(context: Context, edits: SettingsEdit[]): void {
  for (const {
    place: { file },
    before,
    after,
    action,
  } of edits) {
    if (action === 'unchanged') context.line(`${file}: nothing to change`)
    else context.output.write(patchOf(file, before, after))
  }
}

function patchOf(file: string, before: string | undefined, after: string | undefined): Buffer {
  const side = (text: string | undefined) =>
    text === undefined ? undefined : { ...blankEntry('', 'file'), mode: 0o644, size: Buffer.byteLength(text) }
  return unifiedDiffBytes({
    path: rawFromText(file.replace(/^\//, '')),
    before: side(before),
    after: side(after),
    beforeContent: Buffer.from(before ?? ''),
    afterContent: Buffer.from(after ?? ''),
  })
}
