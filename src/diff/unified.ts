import { type Raw, rawToBytes } from '../model/raw-path.ts'
import { type ContentChange, isBinary, type Side, sameContent, sideOf } from './content-change.ts'
import { diffLines } from './line-diff.ts'
import { notesOf } from './notes.ts'
import { type Paint, plainPaint, terminalPaint } from './paint.ts'
import { quoteName } from './quote.ts'
import { extendedHeader } from './unified-header.ts'
import { hunkText } from './unified-hunks.ts'

export interface UnifiedOptions {
  /** Unchanged lines around a hunk. */
  context?: number
  /** For a terminal: ANSI colours as git uses them, and control characters in the content made visible. */
  colour?: boolean
}

const defaultContext = 3
const chunkChars = 64 * 1024

/**
 * The unified diff of one change, in chunks. Plain output is exact to the byte and is what `git apply` and `patch -p1`
 * read; concatenate the output of several changes for a patch of all. Content that cannot be shown (binary, too large)
 * makes a line that `git apply` refuses, so a patch is never applied in part unnoticed. What a patch cannot express
 * (directories, devices, owners, extended attributes, times) is a line of prose that both programs skip.
 */
export function* unifiedDiff(change: ContentChange, options: UnifiedOptions = {}): Generator<Buffer, void> {
  let text = ''
  for (const piece of textOf(change, options)) {
    text += piece
    if (text.length < chunkChars) continue
    yield rawToBytes(text)
    text = ''
  }
  if (text !== '') yield rawToBytes(text)
}

/** The whole of `unifiedDiff` as one buffer. */
export const unifiedDiffBytes = (change: ContentChange, options?: UnifiedOptions): Buffer =>
  Buffer.concat([...unifiedDiff(change, options)])

/** Pieces of the output as raw strings: one character per byte. */
function* textOf(change: ContentChange, options: UnifiedOptions): Generator<Raw, void> {
  const paint = options.colour ? terminalPaint : plainPaint
  const context = options.context ?? defaultContext
  const before = sideOf(change.before, change.beforeContent)
  const after = sideOf(change.after, change.afterContent)
  let shown = true
  if (before && after && before.kind !== after.kind) {
    // A patch changes the type of a file by deleting it and adding it again.
    yield* patchText(change.from ?? change.path, change.from ?? change.path, before, undefined, false, context, paint)
    yield* patchText(change.path, change.path, undefined, after, false, context, paint)
  } else if (before && after) {
    const same = sameContent(change)
    shown = !same || change.from !== undefined || before.mode !== after.mode
    if (shown) yield* patchText(change.from ?? change.path, change.path, before, after, same, context, paint)
  } else if (before) {
    const path = change.from ?? change.path
    yield* patchText(path, path, before, undefined, false, context, paint)
  } else if (after) {
    yield* patchText(change.path, change.path, undefined, after, false, context, paint)
  }
  for (const note of notesOf(change, shown)) yield `${note}\n`
}

function* patchText(
  from: Raw,
  path: Raw,
  before: Side | undefined,
  after: Side | undefined,
  same: boolean,
  context: number,
  paint: Paint,
): Generator<Raw, void> {
  const aName = quoteName(`a/${from}`)
  const bName = quoteName(`b/${path}`)
  yield paint.header(`diff --git ${aName} ${bName}`)
  for (const line of extendedHeader(from, path, before, after, same)) yield paint.header(line)
  if (same) return

  const oldName = before ? aName : '/dev/null'
  const newName = after ? bName : '/dev/null'
  const sizes = `${sizeText(before)} -> ${sizeText(after)} bytes`
  const oldContent = before ? before.content : Buffer.alloc(0)
  const newContent = after ? after.content : Buffer.alloc(0)
  // From "Binary files " or "Files " at the start and " differ" at the end git knows that it cannot apply this.
  if (!oldContent || !newContent) {
    yield `Files ${oldName} and ${newName} (too large or not available, ${sizes}) differ\n`
    return
  }
  if (isBinary(oldContent) || isBinary(newContent)) {
    yield `Binary files ${oldName} and ${newName} differ\nSize: ${sizes}\n`
    return
  }
  const diff = diffLines(oldContent, newContent)
  if (diff.hunks.length === 0) return
  yield paint.header(`--- ${withTab(oldName)}`)
  yield paint.header(`+++ ${withTab(newName)}`)
  yield* hunkText(diff, context, paint)
}

/** A tab ends a name with spaces: readers would take what follows the space for a date. */
const withTab = (name: string) => (name.includes(' ') ? `${name}\t` : name)

const sizeText = (side: Side | undefined): string => `${side?.isLarger ? 'more than ' : ''}${side?.sizeBytes ?? 0}`
