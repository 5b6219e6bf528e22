/** What the structured answers of tools are made of: of the shapes of the operations, what a model can use. */
import { z } from 'zod'
import { path as pathInput, ref } from '../api/inputs.ts'
import * as shapes from '../api/shapes.ts'
import * as traced from '../api/shapes-trace.ts'

export const checkpoint = ref.describe(
  'id, unique prefix of an id, tag or label of a snapshot; HEAD is the present one',
)
export const path = pathInput.describe('relative to the root of the protected directory, or absolute')
export const includeKept = z
  .boolean()
  .optional()
  .describe('also contents of files such as .env, which may be secret; ask the user first')

export const snapshotItem = shapes.snapshot.pick({
  id: true,
  type: true,
  label: true,
  created_at: true,
  parent: true,
  run: true,
  stats: true,
  tags: true,
  head: true,
  partial: true,
  read: true,
  turn: true,
})

export const changeItem = shapes.change
  .pick({ kind: true, path: true, from: true })
  .extend({ size_before: z.int().nullable(), size_after: z.int().nullable() })

export const runItem = shapes.run.pick({
  id: true,
  command: true,
  started_at: true,
  ended_at: true,
  exit_code: true,
  signal: true,
  before: true,
  after: true,
  interrupted: true,
})

export const commandItem = traced.execution
  .pick({ id: true, time: true, pid: true, parent: true, cwd: true, exit_code: true, signal: true, duration_ms: true })
  .extend({ line: z.string().describe('the command line, cut when it is long') })

export const restoreFacts = shapes.restore
  .pick({
    snapshot: true,
    dry_run: true,
    files: true,
    would_stop: true,
    still_open: true,
    safety: true,
    late_edits: true,
    operation: true,
  })
  .extend({
    left_alone: z.object({ count: z.int(), paths: shapes.restore.shape.left_alone }),
    gone: z.int().describe('paths that are gone and that no snapshot has'),
    uncaptured: z.int().describe('paths that stay as they are, because they were not captured'),
  })
export const restoreItem = shapes.restore.shape.changes.element

export const gitCount = z.int().describe('changes inside of .git, which are not listed')
