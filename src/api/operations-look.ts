/** Operations that only look. */
import { z } from 'zod'
import { detectRenames } from '../diff/renames.ts'
import { SavepointError } from '../errors/errors.ts'
import type { DiffOptions, DiffResult, Snapshot } from '../index.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { UNREAD_ROOT } from '../model/snapshot.ts'
import { type Execution, hasFailed } from '../model/trace.ts'
import { eventKinds, kept, limit, path, paths, ref, runRef } from './inputs.ts'
import * as json from './json.ts'
import { eventPageJson } from './json-events.ts'
import { executionJson, traceJson, whyJson } from './json-trace.ts'
import { listing, looking, operation, tracing } from './operation.ts'
import { patchPage } from './patch.ts'
import * as shapes from './shapes.ts'
import { eventPage } from './shapes-events.ts'
import * as traced from './shapes-trace.ts'
import { placeOf } from './snapshot-place.ts'

const empty = z.object({})

/** Beyond this, to compare or to find something in it takes more than a moment. */
const MANY_FILES = 50_000
const MANY_CHANGES = 500
const MANY_BYTES = 1024 * 1024

const isLarge = ({ files, counts }: Snapshot): boolean =>
  files > MANY_FILES || counts.added + counts.modified + counts.deleted > MANY_CHANGES

/** A rename is not a deletion and an addition. */
const joined = ({ from, to, changes }: DiffResult) => json.diffJson({ from, to, changes: detectRenames(changes) })

const pick = ({ from, to, paths }: DiffOptions): DiffOptions => ({ from, to, paths })

const mayBeSecret = (path: Raw) =>
  new SavepointError('failed', `Cannot show ${showPath(path)}: exclude.keep names it, so it may be secret`, {
    hint: 'If its owner agrees, ask again with kept (of an MCP tool: include_kept)',
    data: { path: showPath(path), forbidden: true },
  })

export const lookOperations = [
  operation({
    name: 'status',
    summary: 'what is protected, what changed since HEAD, what is going on',
    effect: 'read',
    isLong: true,
    input: empty,
    output: shapes.status,
    opens: looking,
    async handler(savepoint) {
      const status = await savepoint.status()
      return json.statusJson(status, status.head && placeOf(savepoint, status.head))
    },
  }),
  operation({
    name: 'snapshots',
    summary: 'the snapshots, newest first',
    effect: 'read',
    isOfHistory: true,
    input: z.object({ run: runRef.optional(), limit: limit.optional() }),
    output: z.array(shapes.snapshot),
    opens: listing,
    handler(savepoint, { run, limit }) {
      const wanted = run === undefined ? undefined : new Set(savepoint.snapshots({ run }).map(({ id }) => id))
      return savepoint
        .log()
        .filter(({ snapshot }) => wanted === undefined || wanted.has(snapshot.id))
        .slice(0, limit)
        .map(({ snapshot, tags, isHead }) => json.snapshotJson(snapshot, { tags, head: isHead }))
    },
  }),
  operation({
    name: 'log',
    summary: 'the tree of snapshots, newest first, with HEAD and tags',
    effect: 'read',
    isOfHistory: true,
    input: empty,
    output: z.array(shapes.logNode),
    opens: listing,
    handler: savepoint => savepoint.log().map(json.logNodeJson),
  }),
  operation({
    name: 'head',
    summary: 'the snapshot that the live files descend from',
    effect: 'read',
    isOfHistory: true,
    input: empty,
    output: shapes.snapshot,
    opens: listing,
    handler(savepoint) {
      const node = savepoint.log().find(({ isHead }) => isHead)
      // Says why there is none.
      if (!node) return json.snapshotJson(savepoint.head())
      return json.snapshotJson(node.snapshot, { tags: node.tags, head: true })
    },
  }),
  operation({
    name: 'branches',
    summary: 'the snapshots that nothing descends from',
    effect: 'read',
    isOfHistory: true,
    input: empty,
    output: z.array(shapes.logNode),
    opens: listing,
    handler: savepoint => savepoint.branches().map(json.logNodeJson),
  }),
  operation({
    name: 'show',
    summary: 'one snapshot, with what it changed against its parent',
    effect: 'read',
    isLong: (savepoint, input) => isLarge(savepoint.find(input.snapshot)),
    input: z.object({ snapshot: ref.default('HEAD') }),
    output: shapes.shownSnapshot,
    opens: looking,
    handler(savepoint, input) {
      const snapshot = savepoint.find(input.snapshot)
      const isKnown = snapshot.parent !== undefined && snapshot.root !== UNREAD_ROOT
      const changes = isKnown ? joined(savepoint.snapshotChanges(snapshot.id)).changes : null
      const mounts = savepoint.mountsIn(snapshot.id).map(showPath)
      return { ...json.snapshotDetailJson(snapshot, placeOf(savepoint, snapshot)), mounts, changes }
    },
  }),
  operation({
    name: 'read',
    summary: 'a file as it was in a snapshot',
    effect: 'read',
    isLong: (savepoint, { snapshot, path }) =>
      savepoint.find(snapshot).files > MANY_FILES || (savepoint.entry(snapshot, path)?.size ?? 0) > MANY_BYTES,
    input: z.object({ snapshot: ref.default('HEAD'), path, kept }),
    output: shapes.fileVersion,
    opens: looking,
    handler(savepoint, input) {
      const version = savepoint.file(input.snapshot, input.path)
      if (!input.kept && savepoint.isKept(version.path)) throw mayBeSecret(version.path)
      return json.fileJson(version)
    },
  }),
  operation({
    name: 'diff',
    summary: 'compares HEAD, or a snapshot, with the live files, or two snapshots',
    effect: 'read',
    isLong: true,
    input: z.object({ from: ref.optional(), to: ref.optional(), paths: paths.optional() }),
    output: shapes.diff,
    opens: looking,
    handler: async (savepoint, input) => joined(await savepoint.diff(input)),
  }),
  operation({
    name: 'patch',
    summary: 'the same as lines of a unified diff, a page at a time',
    effect: 'read',
    isLong: true,
    input: z.object({
      from: ref.optional(),
      to: ref.optional(),
      paths: paths.optional(),
      kept,
      start: z.int().nonnegative().default(0).describe('the first line, counted from 0'),
      limit: limit.default(1000).describe('how many lines at most'),
    }),
    output: shapes.patch,
    opens: looking,
    handler: async (savepoint, input) => patchPage(savepoint, await savepoint.diff(pick(input)), input),
  }),
  operation({
    name: 'changes',
    summary: 'what changed since HEAD',
    effect: 'read',
    isLong: true,
    input: empty,
    output: shapes.diff,
    opens: looking,
    handler: async savepoint => joined(await savepoint.changes()),
  }),
  operation({
    name: 'history',
    summary: 'the versions of a path, oldest first',
    effect: 'read',
    isLong: true,
    input: z.object({ path }),
    output: shapes.history,
    opens: looking,
    handler: async (savepoint, input) => json.historyJson(await savepoint.history(input.path)),
  }),
  operation({
    name: 'coverage',
    summary: 'whether a path can be brought back, and which rule decides that',
    effect: 'read',
    isLong: true,
    input: z.object({ path }),
    output: shapes.coverage,
    opens: looking,
    async handler(savepoint, input) {
      const coverage = await savepoint.coverage(input.path)
      return json.coverageJson(coverage, coverage.latest && placeOf(savepoint, coverage.latest))
    },
  }),
  operation({
    name: 'why',
    summary: 'which commands changed a path, newest first',
    effect: 'read',
    isLong: true,
    input: z.object({ path, limit: limit.optional() }),
    output: traced.why,
    opens: tracing,
    handler: (savepoint, { path, limit }) => whyJson(savepoint.why(path, { limit })),
  }),
  operation({
    name: 'trace',
    summary: 'what a run executed; the newest run when none is named',
    effect: 'read',
    isLong: true,
    follows: ({ follow }) => follow === true,
    input: z.object({
      run: runRef.optional(),
      failed: z.boolean().optional().describe('only what failed'),
      follow: z.boolean().optional().describe('tells each command when it has ended, and answers when the run has'),
    }),
    output: traced.trace,
    frames: z.object({ execution: traced.execution }),
    opens: tracing,
    async handler(savepoint, { run, failed, follow }, { send, signal }) {
      const isWanted = (each: Execution) => !failed || hasFailed(each)
      if (follow) {
        const tell = (each: Execution) => isWanted(each) && send({ execution: executionJson(each) })
        await savepoint.followTrace(run, tell, { signal })
      }
      const result = savepoint.trace(run)
      // Those were told already.
      return traceJson({ ...result, executions: follow ? [] : result.executions.filter(isWanted) })
    },
  }),
  operation({
    name: 'events',
    summary: 'everything that happened, as one ordered log, newest first, a page at a time',
    effect: 'read',
    isLong: true,
    input: z.object({
      kind: eventKinds,
      run: runRef.optional(),
      since: z
        .string()
        .min(1)
        .optional()
        .describe('how long ago (10m, 2h, 1d), a time (ISO 8601), a snapshot (after it) or a run (from its start on)'),
      limit: limit.max(1000).default(100),
      cursor: z.string().min(1).optional().describe('`next` of the page before, or `cursor` of an event'),
      reverse: z.boolean().optional().describe('oldest first'),
    }),
    output: eventPage,
    opens: tracing,
    handler: (savepoint, input) => eventPageJson(savepoint.events(input)),
  }),
  operation({
    name: 'runs',
    summary: 'the runs, newest first',
    effect: 'read',
    input: empty,
    output: z.array(shapes.listedRun),
    opens: listing,
    handler: savepoint =>
      savepoint
        .runs()
        .toSorted((a, b) => b.startedAt - a.startedAt)
        .map(json.listedRunJson),
  }),
  operation({
    name: 'operations',
    summary: 'what was done to the history, newest first, and what of it can be undone',
    effect: 'read',
    isOfHistory: true,
    input: empty,
    output: z.array(shapes.operation),
    opens: listing,
    handler: savepoint => savepoint.operations().toReversed().map(json.operationJson),
  }),
  operation({
    name: 'tags',
    summary: 'the tags, by name',
    effect: 'read',
    isOfHistory: true,
    input: empty,
    output: z.array(z.object({ name: z.string(), snapshot: z.string() })),
    opens: listing,
    handler: savepoint =>
      [...savepoint.tags()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, snapshot]) => ({ name, snapshot })),
  }),
]
