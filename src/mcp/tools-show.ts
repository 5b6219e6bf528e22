/** Tools that show contents: a snapshot, a file in it, a patch. */
import { z } from 'zod'
import * as shapes from '../api/shapes.ts'
import { formatBytes, plural } from '../model/format.ts'
import { changeOf, LISTED_CHANGES, type Shown, withoutGit } from './changes.ts'
import { changeItem, checkpoint, gitCount, includeKept, path, snapshotItem } from './items.ts'
import { type Call, type Item, listOf, tool } from './tool.ts'
import { snapshotLine } from './words.ts'

export const showTools = [
  tool({
    name: 'snapshots_show',
    title: 'Show a snapshot, or a file in it',
    operation: 'show',
    description:
      'Shows what a snapshot changed against the one before it, and what it could not capture. With path: the lines of that ' +
      'file as they were in the snapshot.',
    input: z.object({ checkpoint: checkpoint.default('HEAD'), path: path.optional(), include_kept: includeKept }),
    facts: z.object({
      snapshot: snapshotItem.nullable(),
      file: z
        .object({ snapshot: z.string(), path: z.string(), size: z.int().nullable(), binary: z.boolean() })
        .nullable(),
      skipped: z.array(shapes.skipped),
      mounts: shapes.shownSnapshot.shape.mounts,
      more_mounts: z.int().describe('that are not listed here'),
      git: gitCount,
    }),
    lists: { changes: changeItem, lines: z.string() },
    answer: (call, input) =>
      input.path === undefined ? showSnapshot(call, input.checkpoint, input.start_index) : showFile(call, input),
  }),
  tool({
    name: 'snapshots_diff',
    title: 'Compare two states',
    operation: 'patch',
    description:
      'A unified diff: without a and b of HEAD with the live files, with a of that snapshot with the live files, with a and b ' +
      'of those two. path narrows it.',
    input: z.object({
      a: checkpoint.optional(),
      b: checkpoint.optional(),
      path: path.optional(),
      include_kept: includeKept,
    }),
    facts: shapes.patch.pick({ from: true, to: true, files: true, kept: true, git: true }),
    lists: { lines: z.string() },
    async answer(call, { a, b, path, include_kept, start_index, max_length }) {
      const paths = path === undefined ? undefined : [path]
      // A line has at least its end, so that these are enough for a page.
      const range = { start: start_index, limit: max_length }
      // With b alone, as git does it: from HEAD to that.
      const from = a ?? (b === undefined ? undefined : 'HEAD')
      const patch = await call<z.output<typeof shapes.patch>>('patch', {
        from,
        to: b,
        paths,
        kept: include_kept,
        ...range,
      })
      const { kept, git } = patch
      return {
        head: [
          `${patch.from} -> ${patch.to}: ${plural('changed path', patch.files)}`,
          ...(kept.length > 0
            ? [`Contents not shown, because they may be secret: ${kept.slice(0, LISTED_CHANGES).join(', ')}`]
            : []),
          ...(git > 0 ? [`Not shown: ${plural('change', git)} inside .git`] : []),
        ],
        facts: { from: patch.from, to: patch.to, files: patch.files, kept, git },
        list: {
          key: 'lines',
          total: patch.next === null ? start_index + patch.lines.length : null,
          items: withMore(patch.lines, patch.next !== null),
        },
      }
    },
  }),
]

async function showSnapshot(call: Call, ref: string, start: number) {
  const shown = await call<Shown>('show', { snapshot: ref })
  const { changes, git, gitLines } = withoutGit(shown.changes ?? [])
  const skipped = shown.skipped.slice(0, LISTED_CHANGES)
  const mounts = shown.mounts.slice(0, LISTED_CHANGES)
  const more_mounts = shown.mounts.length - mounts.length
  return {
    head: [
      snapshotLine(shown),
      sinceText(shown, changes.length),
      ...gitLines,
      ...skipped.map(({ path, reason }) => `Not captured: ${path} (${reason})`),
      ...mounts.map(path => `Not in it: ${path} (a mount or nested subvolume)`),
      ...(more_mounts > 0 ? [`Not in it: ${more_mounts} more of those`] : []),
    ],
    facts: { snapshot: snapshotItem.parse(shown), file: null, skipped, mounts, more_mounts, git },
    list: listOf('changes', changes, start, changeOf),
    foot: [
      `snapshots_rollback {checkpoint: "${shown.id}"} brings this state back; dry_run says what that would change`,
    ],
  }
}

function sinceText({ parent, read, backend, stats }: Shown, count: number): string {
  if (!read) return `Only ${backend} keeps it until now: what it holds is not known`
  return parent === null
    ? `The first one: ${plural('file', stats.files)}`
    : `${plural('change', count)} since ${parent}`
}

async function showFile(
  call: Call,
  input: { checkpoint: string; path?: string; include_kept?: boolean; start_index: number },
) {
  const wanted = { snapshot: input.checkpoint, path: input.path, kept: input.include_kept }
  const file = await call<z.output<typeof shapes.fileVersion>>('read', wanted)
  // As git counts it: text has no null bytes.
  const binary = file.encoding !== 'utf-8' || file.content.includes('\0')
  const lines = binary ? [] : file.content.replace(/\n$/, '').split('\n')
  return {
    head: [
      `${file.path} in ${file.snapshot}: ${formatBytes(file.size ?? 0)}${binary ? ', not text, and not shown' : ''}`,
    ],
    facts: {
      snapshot: null,
      file: { snapshot: file.snapshot, path: file.path, size: file.size, binary },
      skipped: [],
      mounts: [],
      more_mounts: 0,
      git: 0,
    },
    list: listOf('lines', lines, input.start_index, line => ({ text: line, value: line })),
  }
}

/** When the operation has more lines than it was asked for, there is a next page. */
function* withMore(lines: string[], hasMore: boolean): Generator<Item> {
  for (const line of lines) yield { text: line, value: line }
  if (hasMore) yield { text: '…', value: '…' }
}
