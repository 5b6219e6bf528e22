/** Tools that change files or history. */
import { z } from 'zod'
import * as shapes from '../api/shapes.ts'
import { plural, restoreCounts } from '../model/format.ts'
import { writesToOldFile } from '../model/running.ts'
import { checkpoint, path, restoreFacts, restoreItem, snapshotItem } from './items.ts'
import { type Answer, listOf, tool } from './tool.ts'
import { type SnapshotJson, snapshotLine } from './words.ts'

type RestoreJson = z.output<typeof shapes.restore>
type OperationJson = z.output<typeof shapes.operation>

const LISTED_PATHS = 20
const dryRun = z.boolean().optional().describe('only say what would change')
const name = z.string().min(1).optional().describe('a label to find it by')
const operationFacts = shapes.operation.pick({ id: true, kind: true, summary: true })

export const changeTools = [
  tool({
    name: 'snapshots_create',
    title: 'Take a snapshot',
    operation: 'snapshot',
    description:
      'Takes a snapshot of the live files, to which snapshots_rollback can return. Do it before something risky. In a directory ' +
      'that is not protected yet it begins to protect it.',
    input: z.object({ name }),
    facts: z.object({ snapshot: snapshotItem, skipped: z.array(shapes.skipped) }),
    async answer(call, input) {
      const taken = await call<z.output<typeof shapes.snapshotDetail>>('snapshot', { label: input.name })
      const skipped = taken.skipped.slice(0, LISTED_PATHS)
      return {
        head: [
          `Took ${snapshotLine(taken)}`,
          ...skipped.map(({ path, reason }) => `Not captured: ${path} (${reason})`),
        ],
        facts: { snapshot: snapshotItem.parse(taken), skipped },
        foot: [`To come back to it: snapshots_rollback {checkpoint: "${taken.id}"}`],
      }
    },
  }),
  tool({
    name: 'snapshots_rollback',
    title: 'Bring files back to a snapshot',
    operation: 'rollback',
    description:
      'Brings all files, or only paths, back to how they were in a snapshot. The present state is kept in a safety snapshot first, ' +
      'and snapshots_undo returns to it. What was never captured is left alone. With a run (run_…) only what that run changed is ' +
      'taken back. Use dry_run first.',
    input: z.object({
      checkpoint,
      paths: z.array(path).min(1).optional().describe('only these; default: all'),
      dry_run: dryRun,
    }),
    facts: restoreFacts,
    lists: { changes: restoreItem },
    async answer(call, { checkpoint, paths, dry_run, start_index }) {
      const result = await call<RestoreJson>('rollback', { snapshot: checkpoint, paths, dry_run })
      const to = result.snapshot ?? checkpoint
      return restoreAnswer(result, [`Rolled back to ${to}`, `Would roll back to ${to}`], start_index)
    },
  }),
  tool({
    name: 'snapshots_revert',
    title: 'Bring one file back',
    operation: 'revert',
    description:
      'Brings one file or directory back, from a snapshot or, without one, as it last was captured: from the newest that has it of HEAD and ' +
      'what HEAD descends from. snapshots_history lists older versions. The present version is kept first; snapshots_undo returns to it.',
    input: z.object({ path, checkpoint: checkpoint.optional(), dry_run: dryRun }),
    facts: restoreFacts,
    lists: { changes: restoreItem },
    async answer(call, { path, checkpoint, dry_run, start_index }) {
      const result = await call<RestoreJson>('revert', { path, from: checkpoint, dry_run })
      const from = result.snapshot === null ? '' : ` from ${result.snapshot}`
      return restoreAnswer(result, [`Brought ${path} back${from}`, `Would bring ${path} back${from}`], start_index)
    },
  }),
  tool({
    name: 'snapshots_undo',
    title: 'Take back the last operation',
    operation: 'undo',
    description:
      'Takes back the newest operation: a rollback, revert, delete, compact, tag or a whole run. Files that others changed since ' +
      'are left alone and named. Use dry_run first to see what it is.',
    input: z.object({
      dry_run: dryRun,
      all: z
        .boolean()
        .optional()
        .describe('also what lies outside of the subdirectory that this server was started in'),
    }),
    facts: z.object({ undone: operationFacts, effect: z.string(), restore: restoreFacts.nullable() }),
    lists: { changes: restoreItem },
    async answer(call, { dry_run, all, start_index }) {
      const result = await call<z.output<typeof shapes.undo>>('undo', { dry_run, all })
      const words = [`Undone: ${result.operation.summary}`, `Would undo: ${result.operation.summary}`] as const
      const undone = operationFacts.parse(result.operation)
      const head = [`${result.dry_run ? words[1] : words[0]}. ${result.effect}`]
      const facts = { undone, effect: result.effect, restore: null }
      if (!result.restore) return { head, facts, list: listOf('changes', [], 0, value => ({ text: '', value })) }
      const answer = restoreAnswer(result.restore, words, start_index)
      return {
        ...answer,
        facts: { ...facts, restore: answer.facts },
        foot: result.dry_run ? answer.foot : redoLines(result.restore),
      }
    },
  }),
  tool({
    name: 'snapshots_tag',
    title: 'Tag a snapshot',
    operation: 'tag',
    description:
      'Gives a snapshot a name, under which it is found and kept for good. delete removes the name, not the snapshot.',
    input: z.object({
      name: z.string().min(1),
      checkpoint: checkpoint.optional(),
      delete: z.boolean().optional().describe('remove this tag'),
    }),
    facts: z.object({ tag: z.string(), changed: z.boolean(), snapshot: z.string().nullable() }),
    async answer(call, input) {
      const done = await call<OperationJson | null>('tag', {
        name: input.name,
        snapshot: input.checkpoint,
        delete: input.delete,
      })
      const tags = await call<{ name: string; snapshot: string }[]>('tags')
      const snapshot = tags.find(({ name }) => name === input.name)?.snapshot ?? null
      const now = snapshot === null ? `There is no tag ${input.name} any more` : `Tag ${input.name} is ${snapshot}`
      return {
        head: [`${now}${done === null ? ' already' : ''}`],
        facts: { tag: input.name, changed: done !== null, snapshot },
      }
    },
  }),
  tool({
    name: 'snapshots_delete',
    title: 'Delete a snapshot',
    operation: 'delete',
    description:
      'Removes a snapshot from the history; the files stay as they are. snapshots_undo brings it back, until the store is cleaned ' +
      'up. HEAD, tagged snapshots, and what protects the run that you work in are refused.',
    input: z.object({ checkpoint }),
    facts: z.object({ operation: operationFacts }),
    async answer(call, input) {
      const done = await call<OperationJson>('delete', { snapshots: [input.checkpoint] })
      return {
        head: [done.summary],
        facts: { operation: operationFacts.parse(done) },
        foot: ['To take it back: snapshots_undo'],
      }
    },
  }),
  tool({
    name: 'snapshots_compact',
    title: 'Make one snapshot of several',
    operation: 'compact',
    description:
      'Makes one snapshot of several that follow each other; the state of the newest stays. snapshots_undo takes it back.',
    input: z.object({ checkpoints: z.array(checkpoint).min(2), name }),
    facts: z.object({ snapshot: snapshotItem }),
    async answer(call, input) {
      const made = await call<SnapshotJson>('compact', { snapshots: input.checkpoints, label: input.name })
      return {
        head: [`Made of ${plural('snapshot', input.checkpoints.length)}: ${snapshotLine(made)}`],
        facts: { snapshot: snapshotItem.parse(made) },
        foot: ['To take it back: snapshots_undo'],
      }
    },
  }),
]

function restoreAnswer(result: RestoreJson, [done, would]: readonly [string, string], start: number): Answer {
  const { files, left_alone, gone, uncaptured } = result
  const isNothing = result.changes.length === 0
  return {
    head: [
      `${result.dry_run ? would : done}: ${restoreCounts(files) || (isNothing ? 'nothing to change' : plural('change', result.changes.length))}`,
      ...left_alone.slice(0, LISTED_PATHS).map(({ path, why }) => `Left alone: ${path} (${why})`),
      ...(left_alone.length > LISTED_PATHS ? [`Left alone: ${left_alone.length - LISTED_PATHS} more`] : []),
      ...(gone.count > 0 ? [`Gone, and in no snapshot: ${plural('path', gone.count)}`] : []),
      ...(uncaptured.length > 0
        ? [`Stay as they are, because they were not captured: ${plural('path', uncaptured.length)}`]
        : []),
      ...result.still_open.slice(0, LISTED_PATHS).map(({ path, processes }) => writesToOldFile(path, processes)),
      ...result.would_stop.map(run => `Would stop ${run}, which is at work`),
    ],
    facts: {
      ...restoreFacts.omit({ left_alone: true, gone: true, uncaptured: true }).parse(result),
      left_alone: { count: left_alone.length, paths: left_alone.slice(0, LISTED_PATHS) },
      gone: gone.count,
      uncaptured: uncaptured.length,
    },
    list: listOf('changes', result.changes, start, value => ({
      text: `${value.action} ${value.path}${value.files > 1 ? ` (${plural('file', value.files)})` : ''}`,
      value,
    })),
    foot: isNothing
      ? []
      : result.dry_run
        ? ['Nothing was changed (dry run); the same without dry_run does it']
        : undoLines(result),
  }
}

const undoLines = ({ safety, operation }: RestoreJson): string[] =>
  operation === null
    ? []
    : [`To take it back: snapshots_undo${safety === null ? '' : `; the state before is ${safety}`}`]

const redoLines = ({ safety }: RestoreJson): string[] =>
  safety === null ? [] : [`The state before is ${safety}: snapshots_rollback {checkpoint: "${safety}"} returns to it`]
