/** Operations that change files or history. Each can be undone, or says that it cannot. */
import { z } from 'zod'
import { SavepointError } from '../errors/errors.ts'
import { backendNames } from '../model/backend-name.ts'
import { all, dryRun, live, path, paths, ref, runRef } from './inputs.ts'
import * as json from './json.ts'
import { gcJson, pruneJson, verifyJson } from './json-maintain.ts'
import { operation } from './operation.ts'
import * as shapes from './shapes.ts'
import * as stored from './shapes-store.ts'
import { placeOf } from './snapshot-place.ts'

/** To go back: neither a broken configuration nor a full disk stops it. */
const goingBack = ({ dry_run: isDry }: { dry_run?: boolean }) => ({
  withoutBrokenConfig: true,
  makeRoom: !isDry,
})

const steppingBack = (input: { dry_run?: boolean }) => ({ ...goingBack(input), leaveStep: input.dry_run !== true })

export const changeOperations = [
  operation({
    name: 'snapshot',
    aliases: ['commit'],
    summary: 'takes a snapshot of the live files',
    effect: 'write',
    isLong: true,
    input: z.object({
      label: z.string().min(1).optional(),
      backend: z.enum(backendNames).optional().describe('who keeps it; otherwise `snapshots.backend` says so'),
    }),
    output: shapes.snapshotDetail,
    opens: ({ backend }) => ({ create: true, backend }),
    handler: async (savepoint, { label }) =>
      json.snapshotDetailJson(await savepoint.snapshot({ label }), { head: true }),
  }),
  operation({
    name: 'rollback',
    aliases: ['checkout', 'restore'],
    summary: 'brings files back to a snapshot, or takes back one run',
    effect: 'destructive',
    isIdempotent: true,
    isLong: true,
    input: z.object({
      snapshot: ref.describe('a snapshot, or a run, of which only what it changed is taken back'),
      paths: paths.optional(),
      run: runRef.optional(),
      dry_run: dryRun,
      to: z.string().min(1).optional().describe('writes that state into this new or empty directory instead'),
      without_git: z.boolean().optional().describe('leaves .git as it is'),
      no_safety: z.boolean().optional().describe('goes on when the present state cannot be stored first'),
      all,
      ...live,
    }),
    output: shapes.restore,
    opens: goingBack,
    handler: async (savepoint, input) =>
      json.restoreJson(
        await savepoint.rollback(input.snapshot, {
          paths: input.paths,
          run: input.run,
          dryRun: input.dry_run,
          to: input.to,
          withoutGit: input.without_git,
          noSafety: input.no_safety,
          all: input.all,
          keepRunning: input.keep_running,
          restart: input.restart,
        }),
      ),
  }),
  operation({
    name: 'revert',
    summary:
      'brings one path back, from the snapshot that is named or the newest that has it, of HEAD and what HEAD descends from',
    effect: 'destructive',
    isLong: true,
    input: z.object({ path, from: ref.optional(), dry_run: dryRun }),
    output: shapes.restore,
    opens: goingBack,
    handler: async (savepoint, input) =>
      json.restoreJson(await savepoint.revert(input.path, { from: input.from, dryRun: input.dry_run })),
  }),
  operation({
    name: 'undo',
    summary: 'takes back the newest operation that can be undone',
    effect: 'destructive',
    isLong: true,
    input: z.object({ dry_run: dryRun, all, ...live }),
    output: shapes.undo,
    opens: steppingBack,
    handler: async (savepoint, input) =>
      json.undoJson(
        await savepoint.undo({
          dryRun: input.dry_run,
          all: input.all,
          keepRunning: input.keep_running,
          restart: input.restart,
        }),
      ),
  }),
  operation({
    name: 'redo',
    summary: 'does again what was undone last',
    effect: 'destructive',
    isLong: true,
    input: z.object({ dry_run: dryRun, all }),
    output: shapes.undo,
    opens: steppingBack,
    handler: async (savepoint, input) => json.undoJson(await savepoint.redo({ dryRun: input.dry_run, all: input.all })),
  }),
  operation({
    name: 'tag',
    summary: 'names a snapshot, which is then kept; or removes a name',
    // A name that is moved or removed keeps its snapshot no longer.
    effect: 'destructive',
    isIdempotent: true,
    input: z.object({
      name: z.string().min(1),
      snapshot: ref.optional().describe('HEAD when none is named'),
      delete: z.boolean().optional().describe('removes the tag, whichever snapshot it names'),
    }),
    output: shapes.operation.nullable().describe('null when the tag was there already'),
    handler(savepoint, input) {
      if (input.delete && input.snapshot !== undefined)
        throw new SavepointError('usage', 'Cannot delete a tag of one snapshot: a tag goes by its name alone', {
          hint: 'Leave out which snapshot it is, or delete',
        })
      const done = input.delete ? savepoint.deleteTag(input.name) : savepoint.tag(input.name, input.snapshot)
      return done ? json.operationJson(done) : null
    },
  }),
  operation({
    name: 'delete',
    summary: 'removes snapshots from the history; undo brings them back until gc has run',
    effect: 'destructive',
    isLong: true,
    input: z.object({ snapshots: z.array(ref).min(1) }),
    output: shapes.operation,
    handler: async (savepoint, input) => json.operationJson(await savepoint.delete(input.snapshots)),
  }),
  operation({
    name: 'compact',
    summary: 'makes one snapshot of several that follow each other: the last state stays',
    effect: 'destructive',
    isLong: true,
    input: z.object({ snapshots: z.array(ref).min(2), label: z.string().min(1).optional() }),
    output: shapes.snapshot,
    async handler(savepoint, input) {
      const { snapshot } = await savepoint.compact(input.snapshots, { label: input.label })
      return json.snapshotJson(snapshot, placeOf(savepoint, snapshot))
    },
  }),
  operation({
    name: 'prune',
    summary: 'removes the snapshots that the retention rules do not keep',
    effect: 'destructive',
    isIdempotent: true,
    isLong: true,
    input: z.object({ keep: z.int().nonnegative().optional(), run: runRef.optional(), dry_run: dryRun }),
    output: stored.prune,
    opens: ({ dry_run: isDry }) => ({ makeRoom: !isDry, leaveUnread: isDry }),
    handler: async (savepoint, input) =>
      pruneJson(await savepoint.prune({ keep: input.keep, run: input.run, dryRun: input.dry_run })),
  }),
  operation({
    name: 'gc',
    summary: 'frees what no snapshot needs any more',
    effect: 'destructive',
    isIdempotent: true,
    isLong: true,
    input: z.object({}),
    output: stored.gc,
    opens: () => ({ makeRoom: true }),
    handler: async savepoint => gcJson(await savepoint.gc()),
  }),
  operation({
    name: 'verify',
    summary: 'checks every object of the store and every snapshot',
    effect: 'read',
    isLong: true,
    input: z.object({}),
    output: stored.verify,
    opens: () => ({ leaveBeyond: true }),
    handler: async savepoint => verifyJson(await savepoint.verify()),
  }),
]
