/** The JSON shapes of prune, gc, verify, purge, doctor, export and import, by the rules of json.ts. */
import type * as results from '../index.ts'
import { showPath } from '../model/raw-path.ts'
import { orNull, skippedJson, snapshotJson } from './json.ts'

export function pruneJson(result: results.PruneResult) {
  return {
    dry_run: result.dryRun,
    decisions: result.decisions.map(({ snapshot, keep, isPinned, rule }) => ({
      snapshot: snapshot.id,
      keep,
      pinned: isPinned,
      rule,
    })),
    left_to_store: result.leftToStore.map(({ snapshot, rule }) => ({ snapshot: snapshot.id, rule })),
    operation: orNull(result.operation?.id),
  }
}

export function gcJson(result: results.GcResult) {
  return {
    forgotten_snapshots: result.forgottenSnapshots,
    forgotten_traces: result.forgottenTraces,
    removed_objects: result.removedObjects,
    removed_kept: result.removedKept.length,
    still_kept: result.stillKept,
    freed_bytes: result.freedBytes,
    store_bytes: result.storeBytes,
  }
}

export function verifyJson(result: results.VerifyResult) {
  return {
    ok: result.problems.length === 0,
    objects: result.objects,
    bytes: result.bytes,
    snapshots: result.snapshots,
    snapshots_here: result.here,
    snapshots_deleted: result.deleted,
    snapshots_unread: result.unread,
    problems: result.problems.map(({ what, snapshots, paths }) => ({ what, snapshots, paths })),
    strays: result.strays.map(({ target, backend, name, where, byHand }) => ({
      target,
      backend,
      name,
      where,
      by_hand: byHand,
    })),
    repaired: result.repaired,
  }
}

export function purgeJson(result: results.PurgeResult) {
  return {
    path: showPath(result.path),
    snapshots: result.snapshots,
    versions: result.versions,
    elsewhere: result.elsewhere.map(({ snapshot, path, target }) => ({
      snapshot,
      path: showPath(path),
      target: orNull(target),
    })),
    unread: result.unread,
    left_to_store: result.leftToStore.map(({ snapshot, backend, lost, lostCount }) => ({
      snapshot,
      backend,
      lost: lost.map(({ path, reason }) => ({ path: showPath(path), reason })),
      lost_count: lostCount,
    })),
    gone_before: result.goneBefore,
    may_be_left: result.mayBeLeft.map(({ snapshot, backend, mayBe }) => ({ snapshot, backend, may_be: mayBe })),
    freed_bytes: result.freedBytes,
    ...purgedTracesJson(result),
  }
}

/** Of `purge --text`, which has nothing else. */
export const purgedTracesJson = ({ commands, events }: results.PurgedTraces) => ({
  hidden_commands: commands,
  removed_events: events,
})

export function doctorJson(result: results.DoctorResult) {
  return {
    checks: result.checks.map(({ name, state, detail, fix }) => ({ name, state, detail, fix: orNull(fix) })),
    config: result.config.map(({ path, present }) => ({ path, present })),
  }
}

export function exportJson(result: results.ExportResult) {
  return {
    file: result.file,
    snapshot: result.snapshot.id,
    files: result.files,
    bytes: result.bytes,
    left_out: result.leftOut.map(showPath),
    uncaptured: result.uncaptured.map(skippedJson),
  }
}

export const importJson = (result: results.ImportResult) => ({
  ...snapshotJson(result.snapshot),
  imported_files: result.files,
})
