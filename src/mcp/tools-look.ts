/** Tools that look at snapshots. */
import { z } from 'zod'
import * as shapes from '../api/shapes.ts'
import { formatBytes, plural } from '../model/format.ts'
import { isGitInternal } from '../model/raw-path.ts'
import { changeItem, checkpoint, gitCount, includeKept, path, snapshotItem } from './items.ts'
import { type Call, type Item, listOf, tool } from './tool.ts'
import {
  ageOf,
  type ChangeJson,
  changeLine,
  changesLegend,
  type LogNodeJson,
  type SnapshotJson,
  smallChange,
  snapshotLine,
} from './words.ts'

const LISTED_CHANGES = 20
/** Each also stands at its snapshot. */
const LISTED_NAMES = 100
type Shown = z.output<typeof shapes.snapshotDetail> & { changes: ChangeJson[] | null }

const changeOf = (change: ChangeJson): Item => {
  const value = smallChange(change)
  return { text: changeLine(value), value }
}

/** The inside of .git is noise to a model: it is counted. */
function withoutGit(changes: readonly ChangeJson[]): { changes: ChangeJson[]; git: number; gitLines: string[] } {
  const outside = changes.filter(change => !isGitInternal(change.path))
  const git = changes.length - outside.length
  return { changes: outside, git, gitLines: git > 0 ? [`Not listed: ${plural('change', git)} inside .git`] : [] }
}

export const lookTools = [
  tool({
    name: 'snapshots_list',
    title: 'List snapshots',
    operation: 'snapshots',
    description:
      'Lists the snapshots (checkpoints) of the protected directory, newest first: id, type, age, label, files added (+), ' +
      'modified (~) and deleted (-) against the one before, HEAD and tags. include_changes names the changed files.',
    input: z.object({ include_changes: z.boolean().optional().describe('with the files that each of them changed') }),
    facts: z.object({ head: z.string().nullable() }),
    lists: {
      snapshots: snapshotItem.extend({ changes: z.array(changeItem).optional(), more_changes: z.int().optional() }),
    },
    async answer(call, input) {
      const all = await call<SnapshotJson[]>('snapshots')
      return {
        head: [all.length === 0 ? 'No snapshots yet' : `${plural('snapshot', all.length)}, newest first`],
        facts: { head: all.find(({ head }) => head)?.id ?? null },
        list: {
          key: 'snapshots',
          total: all.length,
          items: listed(call, all.slice(input.start_index), input.include_changes === true),
        },
        foot: all.length === 0 ? ['snapshots_create takes one'] : [],
      }
    },
  }),
  tool({
    name: 'snapshots_log',
    title: 'Show the tree of snapshots',
    operation: 'log',
    description:
      'Shows how snapshots descend from each other, newest first, with HEAD, tags and branches (snapshots that nothing ' +
      'descends from). "from" names the parent where it is not the next line.',
    input: z.object({}),
    facts: z.object({
      head: z.string().nullable(),
      branches: z.array(z.string()),
      tags: z.array(z.object({ name: z.string(), snapshot: z.string() })),
    }),
    lists: { snapshots: snapshotItem.extend({ children: z.array(z.string()), leaf: z.boolean() }) },
    async answer(call, input) {
      const nodes = await call<LogNodeJson[]>('log')
      const tags = await call<{ name: string; snapshot: string }[]>('tags')
      const branches = nodes.filter(({ leaf }) => leaf).map(({ id }) => id)
      const head = nodes.find(({ head }) => head)?.id ?? null
      const next = new Map(nodes.map(({ id }, i) => [id, nodes[i + 1]?.id]))
      return {
        head: [
          `${plural('snapshot', nodes.length)}, ${plural('branch', branches.length)}; HEAD is ${head ?? 'not set'}`,
          ...(branches.length > 1
            ? [
                `Branches end in: ${branches.slice(0, LISTED_CHANGES).join(', ')}${branches.length > LISTED_CHANGES ? ', …' : ''}`,
              ]
            : []),
        ],
        facts: { head, branches: branches.slice(0, LISTED_NAMES), tags: tags.slice(0, LISTED_NAMES) },
        list: listOf('snapshots', nodes, input.start_index, node => ({
          text: `${snapshotLine(node)}${placeOf(node, next.get(node.id))}`,
          value: snapshotItem.extend({ children: z.array(z.string()), leaf: z.boolean() }).parse(node),
        })),
      }
    },
  }),
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
  tool({
    name: 'snapshots_changes',
    title: 'List what changed since the last snapshot',
    operation: 'changes',
    description: `Lists the files that differ from HEAD, the last snapshot (${changesLegend}). snapshots_diff shows how.`,
    input: z.object({}),
    facts: z.object({ from: z.string(), git: gitCount }),
    lists: { changes: changeItem },
    async answer(call, input) {
      const diff = await call<z.output<typeof shapes.diff>>('changes')
      const { changes, git, gitLines } = withoutGit(diff.changes)
      const nothing = changes.length + git === 0
      return {
        head: [
          nothing ? `Nothing changed since ${diff.from}` : `${plural('change', changes.length)} since ${diff.from}`,
          ...gitLines,
        ],
        facts: { from: diff.from, git },
        list: listOf('changes', changes, input.start_index, changeOf),
        foot: nothing
          ? []
          : ['snapshots_diff shows how; snapshots_create keeps this state; snapshots_revert takes one file back'],
      }
    },
  }),
  tool({
    name: 'snapshots_history',
    title: 'List the versions of a file',
    operation: 'history',
    description:
      'Lists the snapshots in which a file or directory is another one than in the snapshot before, oldest first.',
    input: z.object({ path }),
    facts: shapes.history.pick({ path: true, current_size: true, directory: true }).extend({ unchanged: z.int() }),
    lists: { versions: shapes.history.shape.versions.element.omit({ digest: true }) },
    async answer(call, input) {
      const history = await call<z.output<typeof shapes.history>>('history', { path: input.path })
      const versions = history.versions.filter(({ status }) => status !== 'unchanged')
      const { path, current_size, directory } = history
      const now =
        current_size === null ? (directory ? '' : '; it does not exist now') : `; now ${formatBytes(current_size)}`
      return {
        head: [`${path}: ${plural('version', versions.length)}, oldest first${now}`],
        facts: { path, current_size, directory, unchanged: history.versions.length - versions.length },
        list: listOf('versions', versions, input.start_index, ({ digest: _, ...version }) => ({
          text: [
            version.snapshot,
            version.status === 'unknown' ? `not captured (${version.reason})` : version.status,
            version.size === null ? '' : formatBytes(version.size),
            ageOf(version.created_at),
            version.label === null ? '' : JSON.stringify(version.label),
          ]
            .filter(Boolean)
            .join('  '),
          value: version,
        })),
        foot: ['snapshots_show {checkpoint, path} shows a version; snapshots_revert {path, checkpoint} brings it back'],
      }
    },
  }),
]

/** With each snapshot's changes only where a page gets to it. */
async function* listed(call: Call, snapshots: SnapshotJson[], withChanges: boolean): AsyncGenerator<Item> {
  for (const snapshot of snapshots) {
    const text = snapshotLine(snapshot)
    const value = snapshotItem.parse(snapshot)
    if (!withChanges) yield { text, value }
    else {
      const shown = await call<Shown>('show', { snapshot: snapshot.id })
      const { changes, git } = withoutGit(shown.changes ?? [])
      const first = changes.slice(0, LISTED_CHANGES).map(smallChange)
      const more = changes.length - first.length
      const lines = [
        ...first.map(changeLine),
        ...(more > 0 ? [`… ${more} more`] : []),
        ...(git > 0 ? [`.git: ${git}`] : []),
      ]
      yield {
        text: [text, ...lines.map(line => `    ${line}`)].join('\n'),
        value: { ...value, changes: first, more_changes: more },
      }
    }
  }
}

function placeOf({ parent, shown_parent, leaf }: LogNodeJson, next: string | undefined): string {
  const above = shown_parent ?? parent
  return `${above === next || above === null ? '' : `  from ${above}`}${leaf ? '  (branch ends here)' : ''}`
}

async function showSnapshot(call: Call, ref: string, start: number) {
  const shown = await call<Shown>('show', { snapshot: ref })
  const { changes, git, gitLines } = withoutGit(shown.changes ?? [])
  const skipped = shown.skipped.slice(0, LISTED_CHANGES)
  return {
    head: [
      snapshotLine(shown),
      shown.parent === null
        ? `The first one: ${plural('file', shown.stats.files)}`
        : `${plural('change', changes.length)} since ${shown.parent}`,
      ...gitLines,
      ...skipped.map(({ path, reason }) => `Not captured: ${path} (${reason})`),
    ],
    facts: { snapshot: snapshotItem.parse(shown), file: null, skipped, git },
    list: listOf('changes', changes, start, changeOf),
    foot: [
      `snapshots_rollback {checkpoint: "${shown.id}"} brings this state back; dry_run says what that would change`,
    ],
  }
}

async function showFile(
  call: Call,
  input: { checkpoint: string; path?: string; include_kept?: boolean; start_index: number },
) {
  const wanted = { snapshot: input.checkpoint, path: input.path, kept: input.include_kept }
  const file = await call<z.output<typeof shapes.fileVersion>>('read', wanted)
  const binary = file.encoding !== 'utf-8'
  const lines = binary ? [] : file.content.replace(/\n$/, '').split('\n')
  return {
    head: [
      `${file.path} in ${file.snapshot}: ${formatBytes(file.size ?? 0)}${binary ? ', not text, and not shown' : ''}`,
    ],
    facts: {
      snapshot: null,
      file: { snapshot: file.snapshot, path: file.path, size: file.size, binary },
      skipped: [],
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
