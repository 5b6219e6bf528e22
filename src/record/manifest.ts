/**
 * The shape of `manifest.json`. Who reads one from outside checks it with `manifestSchema` (a bundle is not trusted); who writes one
 * has these types. docs/bundle.md tells the meaning of each field.
 */
import { z } from 'zod'
import { FORMAT_VERSION } from './bundle-format.ts'
import { isTime } from './time-text.ts'

export const operationNames = ['read', 'write', 'existence', 'directory', 'delete', 'execute'] as const
export type OperationName = (typeof operationNames)[number]
export const stateTypes = ['file', 'directory', 'symlink', 'fifo', 'socket', 'char-device', 'block-device'] as const
export type StateType = (typeof stateTypes)[number]

const base64 = z.base64()
const count = z.int().nonnegative()
const hex = z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/)
/** -1 stands for nobody. */
const owner = z.int().min(0).max(0xfffffffe)
/** With nanoseconds, in UTC; of the years that 64 bits of nanoseconds have. */
const time = z.string().refine(isTime)

export const stateSchema = z.object({
  exists: z.boolean(),
  tombstone: z.literal(true).optional(),
  type: z.enum(stateTypes).optional(),
  mode: z.int().min(0).max(0o7777).optional(),
  /** Of what had an access list (ACL), whose mask the mode says: the rights of the group itself. */
  group_mode: z.int().min(0).max(7).optional(),
  uid: owner.optional(),
  gid: owner.optional(),
  size: count.optional(),
  mtime: time.optional(),
  target: z.string().optional(),
  target_bytes: base64.optional(),
  device: z.tuple([count, count]).optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  blob: z.string().optional(),
  blob_parts: z.int().min(2).optional(),
})
export type State = z.infer<typeof stateSchema>

export const gitSchema = z.object({
  in_repo: z.literal(true),
  root: z.string(),
  head: hex.nullable(),
  relative_path: z.string(),
  tracked: z.boolean(),
  dirty: z.boolean(),
  ignored: z.boolean(),
  /** The object in HEAD that the content is, when it is clean. */
  oid: hex.optional(),
})
export type GitInfo = z.infer<typeof gitSchema>

export const fileSchema = z.object({
  path: z.string().startsWith('/'),
  path_bytes: base64.optional(),
  operations: z.array(z.enum(operationNames)),
  /** The command began with it, open for writing. */
  inherited: z.literal(true).optional(),
  before: stateSchema,
  after: stateSchema,
  git: gitSchema.or(z.object({ in_repo: z.literal(false) })),
})
export type FileRecord = z.infer<typeof fileSchema>

export const skippedSchema = z.object({
  path: z.string(),
  path_bytes: base64.optional(),
  state: z.enum(['before', 'after']).optional(),
  reason: z.string(),
})
export type SkippedRecord = z.infer<typeof skippedSchema>

export const manifestSchema = z.object({
  format_version: z.literal(FORMAT_VERSION),
  created_by: z.string().optional(),
  command: z.array(z.string()),
  exit_status: z.int().nullable(),
  signal: z.string().nullable(),
  start_cwd: z.string().startsWith('/'),
  start_cwd_bytes: base64.optional(),
  uid: owner,
  gid: owner,
  started_at: z.iso.datetime(),
  duration_ms: z.number().nonnegative(),
  recorded: z.enum(['all', 'changes']),
  files: z.array(fileSchema),
  git_repositories: z.array(
    z.object({ root: z.string(), head: hex.nullable(), head_before: hex.nullable().optional() }),
  ),
  skipped: z.array(skippedSchema),
  skipped_count: count,
  not_recorded: z.object({ ignored: count, of_others: count }),
  lost_events: count,
  complete: z.boolean(),
  incomplete_because: z.array(z.string()),
})
export type Manifest = z.infer<typeof manifestSchema>
/** What stands before `files`, and what is known only after them. */
export type ManifestHead = Pick<
  Manifest,
  | 'command'
  | 'exit_status'
  | 'signal'
  | 'start_cwd'
  | 'start_cwd_bytes'
  | 'uid'
  | 'gid'
  | 'started_at'
  | 'duration_ms'
  | 'recorded'
>
export type ManifestTail = Omit<Manifest, keyof ManifestHead | 'files' | 'format_version' | 'created_by'>
