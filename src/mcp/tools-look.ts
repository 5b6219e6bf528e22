/** Tools that list: snapshots, changes, versions. */

import { z } from 'zod'
import * as shapes from '../api/shapes.ts'
import { changesLegend } from '../model/change-letters.ts'
import { formatBytes, plural } from '../model/format.ts'
import { changeOf, LISTED_CHANGES, type Shown, withoutGit } from './changes.ts'
import { changeItem, gitCount, path, snapshotItem } from './items.ts'
import { type Call, type Item, listOf, tool } from './tool.ts'
import {
  ageOf,
  changeLine,
  keptLines,
  type LogNodeJson,
  type SnapshotJson,
  smallChange,
  snapshotLine,
} from './words.ts'

/** Of a page, for the names that stand beside its snapshots; each also stands at its own. */
const NAMES_SHARE = 1 / 8

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
      more_branches: z.int().describe('that are not listed here; each stands at its snapshot'),
      tags: z.array(z.object({ name: z.string(), snapshot: z.string() })),
      more_tags: z.int(),
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
        facts: {
          head,
          ...fitting('branches', branches, input.max_length),
          ...fitting('tags', tags, input.max_length),
        },
        list: listOf('snapshots', nodes, input.start_index, node => ({
          text: `${snapshotLine(node)}${placeOf(node, next.get(node.id))}`,
          value: snapshotItem.extend({ children: z.array(z.string()), leaf: z.boolean() }).parse(node),
        })),
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
    facts: shapes.history
      .pick({ path: true, current_size: true, directory: true, moved_to: true, kept: true })
      .extend({ unchanged: z.int() }),
    lists: { versions: shapes.history.shape.versions.element.omit({ digest: true }) },
    async answer(call, input) {
      const history = await call<z.output<typeof shapes.history>>('history', { path: input.path })
      const versions = history.versions.filter(({ status }) => status !== 'unchanged')
      const { path, current_size, directory, moved_to, kept } = history
      const now =
        current_size === null ? (directory ? '' : '; it does not exist now') : `; now ${formatBytes(current_size)}`
      return {
        head: [
          `${path}: ${plural('version', versions.length)}, oldest first${now}`,
          ...(moved_to === null ? [] : [`A run moved what was there to ${moved_to}: see the history of that, too`]),
          ...keptLines(kept),
        ],
        facts: { path, current_size, directory, moved_to, kept, unchanged: history.versions.length - versions.length },
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

/** As many as have room beside a page, and how many more there are. */
function fitting(key: string, all: readonly unknown[], length: number): Record<string, unknown> {
  let used = 0
  const end = all.findIndex(each => {
    used += JSON.stringify(each).length + 1
    return used > length * NAMES_SHARE
  })
  const shown = end < 0 ? all : all.slice(0, end)
  return { [key]: shown, [`more_${key}`]: all.length - shown.length }
}

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
