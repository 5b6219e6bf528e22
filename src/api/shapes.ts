/** The shapes of what operations answer, as zod schemas: json.ts makes the values, and the compiler holds both together. */
import { z } from 'zod'
import { unknownReasons } from '../model/entry.ts'
import { operationKinds, snapshotTypes } from '../model/snapshot.ts'

export const time = z.string().describe('ISO 8601 in UTC')
export const path = z.string().describe('bytes that are not UTF-8 are escaped as \\xNN, a backslash as \\\\')
export const id = z.string()

export const counts = z.object({ added: z.int(), modified: z.int(), deleted: z.int() })

export const snapshot = z
  .object({
    id,
    type: z.enum(snapshotTypes),
    label: z.string().nullable(),
    backend: z.string(),
    created_at: time.nullable(),
    size_delta: z.int().describe('bytes that it added to the store'),
    native_ref: z.string().nullable(),
    damage: z.string().nullable().describe('what is wrong with its archive; the store has what it holds'),
    parent: id.nullable(),
    run: id.nullable(),
    stats: counts.extend({ files: z.int(), bytes: z.int(), skipped: z.int() }),
    tags: z.array(z.string()),
    head: z.boolean(),
    partial: z.boolean().describe('something could not be captured'),
    read: z
      .boolean()
      .describe('false: only a filesystem keeps it until now, and what it holds is not known: stats are 0'),
    turn: z
      .object({
        agent: z.string(),
        session: z.string(),
        number: z.int().describe('counts the prompts of the session, from 1'),
        event: z.string().describe('what the hook was called for'),
        tool: z.string().nullable(),
      })
      .nullable()
      .describe("whose turn it was, of one that an agent's hook took"),
  })
  .meta({ id: 'Snapshot' })

export const skipped = z.object({ path, reason: z.enum(unknownReasons) })

const keptCopy = z
  .object({
    snapshot: id,
    backend: z.string(),
    where: z.string().describe('the state that the filesystem keeps'),
    file: path.nullable().describe('where it can be copied from; null: a clone or mount of the state shows it'),
  })
  .nullable()
  .describe('where a filesystem keeps what was not captured, in the newest state that has it')

export const snapshotDetail = snapshot
  .extend({
    command: z.string().nullable(),
    root: z.string().nullable(),
    unsettled: z.boolean(),
    coverage: z.enum(['run-only', 'all']),
    skipped: z.array(skipped),
    deleted_at: time.nullable(),
  })
  .meta({ id: 'SnapshotDetail' })

export const logNode = snapshot
  .extend({
    command: z.string().nullable(),
    unsettled: z.boolean(),
    children: z.array(id),
    leaf: z.boolean(),
    shown_parent: id.nullable(),
  })
  .meta({ id: 'LogNode' })

const entry = z
  .object({
    type: z.enum(['file', 'dir', 'link', 'fifo', 'char', 'block', 'unknown']),
    mode: z.string().nullable().describe('octal'),
    uid: z.int(),
    gid: z.int(),
    size: z.int().nullable(),
    mtime_ns: z.string().nullable(),
    digest: z.string().nullable().describe('BLAKE3-256 in hex'),
    link_target: path.nullable(),
    reason: z.enum(unknownReasons).nullable(),
  })
  .meta({ id: 'Entry' })

export const fileVersion = entry
  .extend({ snapshot: id, path, encoding: z.enum(['utf-8', 'base64']), content: z.string() })
  .meta({ id: 'FileVersion' })

const lines = z.object({ insertions: z.int().nullable(), deletions: z.int().nullable() })

export const change = z
  .object({
    kind: z.enum(['added', 'deleted', 'modified', 'metadata', 'type-changed', 'renamed']),
    path,
    from: path.nullable().describe('where it was before a rename'),
    before: entry.nullable(),
    after: entry.nullable(),
    lines: lines.nullable().optional(),
  })
  .meta({ id: 'Change' })

export const shownSnapshot = snapshotDetail
  .extend({
    mounts: z.array(path).describe('mounts and nested subvolumes, which never belong to a snapshot'),
    changes: z.array(change).nullable().describe('against its parent; null: it has none, or is not read yet'),
  })
  .meta({ id: 'ShownSnapshot' })

export const diff = z.object({ from: z.string(), to: z.string(), changes: z.array(change) }).meta({ id: 'Diff' })

export const patch = z
  .object({
    from: z.string(),
    to: z.string(),
    files: z.int().describe('changed paths, those included that are not shown'),
    start: z.int(),
    lines: z.array(z.string()),
    next: z.int().nullable().describe('the line to go on with; null at the end'),
    kept: z.array(path).describe('changed, and not shown because they may be secret'),
    git: z.int().describe('changed inside of .git, and not shown'),
  })
  .meta({ id: 'Patch' })

const pathList = z.object({ count: z.int(), paths: z.array(path) })

export const restore = z
  .object({
    snapshot: id.nullable(),
    dry_run: z.boolean(),
    to: z.string().nullable(),
    files: z.object({ created: z.int(), deleted: z.int(), replaced: z.int(), metadata: z.int() }),
    empty_dirs: z.int(),
    changes: z.array(z.object({ action: z.enum(['create', 'delete', 'replace', 'metadata']), path, files: z.int() })),
    left_alone: z
      .array(
        z.object({
          path,
          why: z.enum([
            'edited',
            'purged',
            'not-stored',
            'no-room',
            'mounted',
            'subvolume',
            'holds-uncaptured',
            'refused',
            'attributes',
            'in-the-way',
            'only-copy',
            'outside',
            'overlapped',
          ]),
        }),
      )
      .describe(
        'what was not touched, and why; `attributes`: what was, but could not get its owner or other attributes back',
      ),
    kept_dirs: z.array(path),
    hidden: pathList,
    gone: z.object({ count: z.int(), paths: z.array(skipped.extend({ snapshot: id.nullable(), kept: keptCopy })) }),
    unprotected: z.object({ count: z.int(), paths: z.array(skipped.extend({ to: path.nullable(), kept: keptCopy })) }),
    mixed: z.array(path),
    uncaptured: z.array(skipped.extend({ kept: keptCopy })),
    would_stop: z.array(id),
    still_open: z
      .array(z.object({ path, processes: z.array(z.object({ pid: z.int(), name: z.string() })) }))
      .describe('replaced or removed while these processes have it open for writing: they write to the old file'),
    safety: id.nullable().describe('the state before: `undo` goes back to it'),
    late_edits: id.nullable(),
    operation: id.nullable(),
  })
  .meta({ id: 'Restore' })

export const operation = z
  .object({
    id: id.nullable(),
    kind: z.enum(operationKinds),
    at: time.nullable(),
    state: z.enum(['done', 'undone', 'past', 'fixed']),
    summary: z.string(),
    before: id.nullable(),
    after: id.nullable(),
    head_before: id.nullable(),
    head_after: id.nullable(),
    rule: z.string().nullable(),
  })
  .meta({ id: 'Operation' })

export const undo = z
  .object({ operation, dry_run: z.boolean(), effect: z.string(), restore: restore.nullable() })
  .meta({ id: 'Undo' })

export const run = z
  .object({
    id,
    command: z.array(z.string()),
    cwd: z.string(),
    started_at: time.nullable(),
    ended_at: time.nullable(),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
    pid: z.int().nullable(),
    before: id.nullable(),
    after: id.nullable(),
    interrupted: z.boolean(),
    continues: id.nullable(),
  })
  .meta({ id: 'Run' })

export const listedRun = run
  .extend({
    taken_back: z
      .object({
        operation: id,
        kind: z.enum(['undo', 'rollback']),
        partly: z.boolean().describe('only some paths were asked for, or all but `.git`'),
      })
      .nullable()
      .describe('what took it back, or the run that it was started in, and stands; null: nothing did'),
  })
  .meta({ id: 'ListedRun' })

export const status = z
  .object({
    target: z.string(),
    timeline: z.string(),
    home: z.string(),
    backend: z.string(),
    head: snapshot.nullable(),
    snapshots: z.int(),
    store_bytes: z.int(),
    counts,
    changes: z.array(change).nullable(),
    skipped: z.array(skipped),
    last_operation: operation.nullable(),
    writer: z.object({ pid: z.int(), purpose: z.string() }).nullable(),
    running: z.array(run),
    interrupted: z.array(run),
  })
  .meta({ id: 'Status' })

export const history = z
  .object({
    path,
    current_size: z.int().nullable(),
    directory: z.boolean(),
    hidden: z.boolean(),
    moved_to: path.nullable().describe('where a run moved what was there, and snapshots have it'),
    kept: keptCopy,
    versions: z.array(
      z.object({
        snapshot: id,
        type: z.enum(snapshotTypes),
        label: z.string().nullable(),
        created_at: time.nullable(),
        status: z.enum(['new', 'modified', 'unchanged', 'deleted', 'unknown']),
        reason: z.enum(unknownReasons).nullable(),
        size: z.int().nullable(),
        digest: z.string().nullable(),
        mode: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'History' })

export const coverage = z
  .object({
    path,
    covered: z.boolean(),
    exists: z.boolean().nullable(),
    reason: z.enum([...unknownReasons, 'absent', 'disabled']).nullable(),
    rule: z.string().nullable(),
    left_out: z
      .object({ count: z.int(), paths: z.array(skipped).describe('the first ten') })
      .describe('what lies below a directory and snapshots do not capture'),
    up_to_date: z
      .boolean()
      .describe('whether a snapshot has what is on disk, times aside, but for what is left out below it'),
    current: z.boolean().describe('whether a snapshot has all of what is on disk, times aside, with nothing left out'),
    versions: z.int().describe('how many snapshots have it'),
    not_read: z.int().describe('how many more only a filesystem keeps until now: whether they have it is not known'),
    may_be_in: z
      .array(z.string())
      .describe('snapshots that a filesystem keeps whole, and so perhaps with it, although it was not captured'),
    kept: keptCopy,
    latest: snapshot
      .nullable()
      .describe('the newest that has what is on disk, but for what is left out; if none does, the newest that has it'),
  })
  .meta({ id: 'Coverage' })
