import { createHash } from 'node:crypto'
import type { Raw } from '../model/raw-path.ts'
import type { Side } from './content-change.ts'
import { quoteName } from './quote.ts'

const OWNER_EXECUTES = 0o100

/** The lines between `diff --git` and `---`, as git writes them. `same` says that both sides hold the same bytes. */
export function* extendedHeader(
  from: Raw,
  path: Raw,
  before: Side | undefined,
  after: Side | undefined,
  same: boolean,
): Generator<string, void> {
  if (!before && after) yield `new file mode ${modeText(after)}`
  if (before && !after) yield `deleted file mode ${gitModeText(before)}`
  const bothThere = before !== undefined && after !== undefined
  if (bothThere && before.mode !== after.mode) {
    yield `old mode ${modeText(before)}`
    yield `new mode ${modeText(after)}`
  }
  if (from !== path) {
    if (same) yield 'similarity index 100%'
    yield `rename from ${quoteName(from)}`
    yield `rename to ${quoteName(path)}`
  }
  // GNU patch needs this line to see that an empty file is deleted, or that the changed file is a link.
  const oldId = before ? before.content && blobId(before.content) : noBlob
  const newId = after ? after.content && blobId(after.content) : noBlob
  if (same || !oldId || !newId) return
  yield `index ${oldId}..${newId}${bothThere && before.mode === after.mode ? ` ${modeText(after)}` : ''}`
}

const modeText = (side: Side) => side.mode.toString(8)

/** Of a file that goes: git knows two modes, and `git apply` warns when the one it has is not that. */
const gitModeText = (side: Side) =>
  side.kind === 'link' ? modeText(side) : side.mode & OWNER_EXECUTES ? '100755' : '100644'

const blobIdDigits = 7
const noBlob = '0'.repeat(blobIdDigits)

/** What git calls this content, abbreviated. */
const blobId = (content: Buffer) =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex').slice(0, blobIdDigits)
