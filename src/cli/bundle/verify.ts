/** `bundle verify`: says everything that is wrong. */
import { errorCatalogue } from '../../errors/errors.ts'
import { formatBytes, plural } from '../../model/format.ts'
import { type Bundle, verifyBundle } from '../../record/index.ts'
import type { Context } from '../context.ts'
import { showText } from '../text.ts'

export function verifyBundleWords(context: Context, bundle: Bundle): number {
  const { files, blobs, bytes, complete, problems } = verifyBundle(bundle)
  const exitCode = problems.length > 0 ? errorCatalogue['bundle.damaged'].exit : 0
  if (context.options.json) {
    context.json({ bundle: bundle.directory, files, blobs, bytes, complete, problems })
    return exitCode
  }
  for (const problem of problems) context.line(context.style.red(showText(problem)))
  if (context.options.quiet) return exitCode
  const checked = `${plural('path', files)}, ${plural('content', blobs)}, ${formatBytes(bytes)}`
  if (problems.length > 0) context.line(`${plural('problem', problems.length)} found: ${checked}`)
  else
    context.line(
      `${context.style.green('All good')}: ${checked}${complete ? '' : ' (the recording itself is INCOMPLETE)'}`,
    )
  return exitCode
}
