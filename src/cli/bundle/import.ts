/** `bundle import`: into the timeline of the target. */

import { plural } from '../../model/format.ts'
import { type Bundle, importBundle } from '../../record/index.ts'
import type { Context } from '../context.ts'
import { nameOf } from '../render/snapshot.ts'

export async function importWords(context: Context, bundle: Bundle, options: { withGit?: boolean }): Promise<number> {
  const savepoint = await context.open({ create: true })
  const { before, after, paths, missing } = await importBundle(bundle, savepoint, {
    env: process.env,
    withGit: options.withGit === true,
  })
  if (context.options.json) context.json({ before: before.id, after: after.id, paths, missing: missing.length })
  else if (context.options.quiet) context.lines([before.id, after.id])
  else {
    context.line(`Imported ${bundle.directory} as ${nameOf(before)} and ${nameOf(after)}: ${plural('path', paths)}`)
    if (missing.length > 0)
      context.line(`${plural('path', missing.length)} without content in the bundle: as the live files are`)
    context.line(`To see it: ${context.style.command(`diff ${before.id} ${after.id}`)}`)
  }
  return missing.length > 0 ? 3 : 0
}
