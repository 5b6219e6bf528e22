/** `bundle diff`: what the command changed, as a patch. */
import { detectRenames } from '../../diff/renames.ts'
import type { DiffResult } from '../../index.ts'
import { isWithin, type Raw } from '../../model/raw-path.ts'
import { type Bundle, type BundleFile, changesOf } from '../../record/index.ts'
import type { Context } from '../context.ts'
import { namesBytes, statText, writeUnified } from '../render/diff.ts'

const MAX_SHOWN_BYTES = 64 * 1024 * 1024

export interface DiffOptions {
  stat?: boolean
  nameOnly?: boolean
}

export async function diffBundle(context: Context, bundle: Bundle, options: DiffOptions): Promise<void> {
  const diff = diffOf(bundle)
  if (context.options.json) {
    context.json({
      bundle: bundle.directory,
      changes: diff.changes.map(({ kind, path, from }) => {
        const { raw, ...file } = diff.fileOf(path)!
        return { kind, ...(from === undefined ? {} : { from: diff.fileOf(from)!.path }), ...file }
      }),
    })
    return
  }
  if (diff.changes.length === 0) {
    context.notice('the command changed nothing that is recorded')
    return
  }
  const outside = diff.changes.filter(({ path }) => !isWithin(diff.fileOf(path)!.raw, bundle.startCwd)).length
  if (outside > 0) context.notice(`${outside} of the changed paths lie outside of ${bundle.manifest.start_cwd}`)
  await context.paged(async output => {
    if (options.nameOnly) output.write(namesBytes(diff.changes))
    else if (options.stat) output.write(statText(diff, context.width, context.style.on))
    else await writeUnified(diff, output, 3, context.style.on)
  })
}

/** Names as they are seen from where the command started, so that the patch can be applied there; others from the root on. */
function diffOf(bundle: Bundle): DiffResult & { fileOf(path: Raw): BundleFile | undefined } {
  const start = bundle.startCwd.slice(1)
  const near = (path: Raw): Raw => (start !== '' && isWithin(path, start) ? path.slice(start.length + 1) : path)
  const changes = detectRenames(changesOf(bundle)).map(change => ({
    ...change,
    path: near(change.path),
    ...(change.from === undefined ? {} : { from: near(change.from) }),
  }))
  const byPath = new Map(bundle.files.map(file => [near(file.raw.slice(1)), file]))
  return {
    from: 'before',
    to: 'after',
    changes,
    fileOf: path => byPath.get(path),
    content: (change, side) => {
      const file = byPath.get(side === 'before' ? (change.from ?? change.path) : change.path)
      return file && bundle.content(file[side], MAX_SHOWN_BYTES)
    },
  }
}
