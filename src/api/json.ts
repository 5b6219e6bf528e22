/**
 * The JSON shapes of every command (those that maintain the store are in json-maintain.ts), so that other faces can use
 * the same names. Keys are snake_case, what is absent is null, times are ISO 8601 in UTC, sizes are bytes, paths are
 * escaped as `showPath` does (lossless), digests are BLAKE3-256 in hex, modes are octal text.
 */
import { isUtf8 } from 'node:buffer'
import type * as results from '../index.ts'
import type { Change, ChangeCounts, Entry } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { type Operation, type Run, type Skipped, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'

export const orNull = <T>(value: T | undefined): T | null => value ?? null
export const time = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())
const shownOrNull = (path: Raw | undefined): string | null => (path === undefined ? null : showPath(path))
const hex = (id: string | undefined): string | null => (id ? Buffer.from(id, 'latin1').toString('hex') : null)
const octal = (mode: number | undefined): string | null =>
  mode === undefined ? null : mode.toString(8).padStart(4, '0')

/** What is known of a snapshot only in its timeline. */
export interface SnapshotPlace {
  tags?: string[]
  head?: boolean
}

/** An element of `snapshots`; also `head`, `snapshot`, `compact`, `import` and the elements of `branches`. */
export function snapshotJson(snapshot: Snapshot, { tags = [], head = false }: SnapshotPlace = {}) {
  return {
    id: snapshot.id,
    type: snapshot.type,
    label: orNull(snapshot.label),
    backend: snapshot.backend,
    created_at: time(snapshot.createdAt),
    size_delta: snapshot.sizeDelta,
    native_ref: orNull(snapshot.nativeRef),
    damage: orNull(snapshot.damage),
    parent: orNull(snapshot.parent),
    run: orNull(snapshot.run),
    stats: {
      ...countsJson(snapshot.counts),
      files: snapshot.files,
      bytes: snapshot.bytes,
      skipped: snapshot.skippedCount,
    },
    tags,
    head,
    partial: snapshot.skippedCount > 0,
    read: snapshot.root !== UNREAD_ROOT,
    turn: snapshot.turn ? { ...snapshot.turn, tool: orNull(snapshot.turn.tool) } : null,
  }
}

/** `show` and `snapshot`: with what did not fit into a listing. */
export function snapshotDetailJson(snapshot: Snapshot, place?: SnapshotPlace) {
  return {
    ...snapshotJson(snapshot, place),
    command: orNull(snapshot.command),
    root: hex(snapshot.root),
    unsettled: snapshot.unsettled,
    coverage: snapshot.runOnly ? ('run-only' as const) : ('all' as const),
    skipped: snapshot.skipped.map(skippedJson),
    deleted_at: time(snapshot.deletedAt),
  }
}

export const skippedJson = ({ path, reason }: Skipped) => ({ path: showPath(path), reason })

const countsJson = ({ added, modified, deleted }: ChangeCounts) => ({ added, modified, deleted })

/** An element of `log` and `branches`. */
export function logNodeJson(node: results.LogNode) {
  return {
    ...snapshotJson(node.snapshot, { tags: node.tags, head: node.isHead }),
    command: orNull(node.snapshot.command),
    unsettled: node.snapshot.unsettled,
    children: node.children,
    leaf: node.isLeaf,
    shown_parent: orNull(node.shownParent),
  }
}

function entryJson(entry: Entry) {
  return {
    type: entry.kind,
    mode: octal(entry.mode),
    uid: entry.uid,
    gid: entry.gid,
    size: entry.kind === 'file' && entry.reason === undefined ? entry.size : null,
    mtime_ns: entry.kind === 'dir' ? null : String(entry.mtimeNs),
    digest: hex(entry.content),
    link_target: entry.kind === 'link' ? showPath(entry.target) : null,
    reason: orNull(entry.reason),
  }
}

/** `show SNAP PATH`: `content` is text, or base64 where it is not UTF-8, as `encoding` says. */
export function fileJson({ snapshot, path, entry, content }: results.FileVersion) {
  const encoding = isUtf8(content) ? ('utf-8' as const) : ('base64' as const)
  return {
    snapshot: snapshot.id,
    path: showPath(path),
    ...entryJson(entry),
    encoding,
    content: content.toString(encoding),
  }
}

/** The target directory itself is '.', as it can be given to any command. */
const changedPathJson = (path: Raw): string => showPath(path) || '.'

/** An element of every list of changes: kind is added, deleted, modified, metadata, type-changed or renamed. */
export function changeJson(change: Change) {
  return {
    kind: change.kind,
    path: changedPathJson(change.path),
    from: shownOrNull(change.from),
    before: change.before ? entryJson(change.before) : null,
    after: change.after ? entryJson(change.after) : null,
  }
}

/** Lines that a change adds and removes; null when the content is binary or not available. */
export interface LinesJson {
  insertions: number | null
  deletions: number | null
}

/** `diff` and `changes`, and the changes of `show`; `lines` only with --stat. */
export function diffJson(diff: { from: string; to: string; changes: Change[] }, lines?: (LinesJson | undefined)[]) {
  return {
    from: diff.from,
    to: diff.to,
    changes: diff.changes.map((change, i) =>
      lines ? { ...changeJson(change), lines: lines[i] ?? null } : changeJson(change),
    ),
  }
}

/** What no snapshot has and is not there any more; `count` is of all, `paths` the first hundred. */
const goneJson = ({ count, paths }: results.Gone) => ({
  count,
  paths: paths.map(path => ({ ...skippedJson(path), snapshot: orNull(path.snapshot), kept: keptCopyJson(path.kept) })),
})

const keptCopyJson = (kept: results.KeptCopy | undefined) => (kept ? { ...kept, file: shownOrNull(kept.file) } : null)

/** What no snapshot has and is not as it was, or (`to`) where it was. */
const hiddenJson = ({ count, paths }: results.RestoreResult['hidden']) => ({ count, paths: paths.map(showPath) })
const uncapturedJson = (all: results.RestoreResult['uncaptured']) =>
  all.map(({ path, reason }) => ({ path: showPath(path), reason }))
const unprotectedJson = ({ count, paths }: results.Unprotected) => ({
  count,
  paths: paths.map(path => ({ ...skippedJson(path), to: shownOrNull(path.to), kept: keptCopyJson(path.kept) })),
})

/** `rollback`, `revert`, and inside `undo` and `redo`. */
export function restoreJson(result: results.RestoreResult) {
  return {
    snapshot: orNull(result.snapshot?.id),
    dry_run: result.dryRun,
    to: orNull(result.to),
    files: { ...result.files },
    empty_dirs: result.emptyDirs,
    changes: result.changes.map(({ action, path, files }) => ({ action, path: changedPathJson(path), files })),
    left_alone: result.leftAlone.map(({ path, why }) => ({ path: changedPathJson(path), why })),
    kept_dirs: result.keptDirs.map(showPath),
    hidden: hiddenJson(result.hidden),
    gone: goneJson(result.gone),
    unprotected: unprotectedJson(result.unprotected),
    mixed: result.mixed.map(showPath),
    uncaptured: result.uncaptured.map(path => ({ ...skippedJson(path), kept: keptCopyJson(path.kept) })),
    would_stop: result.wouldStop ?? [],
    still_open: result.stillOpen.map(({ path, processes }) => ({ path: changedPathJson(path), processes })),
    ...{ safety: orNull(result.safety?.id), late_edits: orNull(result.lateEdits?.id) },
    operation: orNull(result.operation?.id),
  }
}

export function undoJson(result: results.UndoResult) {
  return {
    operation: operationJson(result.operation),
    dry_run: result.dryRun,
    effect: result.effect,
    restore: result.restore ? restoreJson(result.restore) : null,
  }
}

/** An element of `operations`; also `tag` and `delete`. */
export function operationJson(operation: Operation) {
  return {
    id: operation.id || null,
    kind: operation.kind,
    at: time(operation.at),
    state: operation.state,
    summary: operation.summary,
    before: orNull(operation.before),
    after: orNull(operation.after),
    head_before: orNull(operation.headBefore),
    head_after: orNull(operation.headAfter),
    rule: orNull(operation.rule),
  }
}

/** An element of `runs`. */
export function runJson(run: Run & { isInterrupted?: boolean; continues?: string }) {
  return {
    id: run.id,
    command: run.command,
    cwd: run.cwd,
    started_at: time(run.startedAt),
    ended_at: time(run.endedAt),
    exit_code: orNull(run.exitCode),
    signal: orNull(run.signal),
    pid: orNull(run.pid),
    before: orNull(run.before),
    after: orNull(run.after),
    interrupted: run.isInterrupted ?? false,
    continues: orNull(run.continues),
  }
}

/** An element of `runs`. */
export const listedRunJson = (run: results.ListedRun) => ({ ...runJson(run), taken_back: orNull(run.takenBack) })

/** `run --json`, one line on stderr: stdout is the command's. */
export function runResultJson(result: results.RunResult) {
  return {
    run: result.run ? runJson(result.run) : null,
    trace: result.trace ?? null,
    exit_code: result.exitCode,
    signal: orNull(result.signal),
    counts: countsJson(result.counts),
    changes: result.changes.map(changeJson),
    moved_to: orNull(result.movedTo),
    gone: goneJson(result.gone),
    unprotected: unprotectedJson(result.unprotected),
    hidden: hiddenJson(result.hidden),
    uncaptured: uncapturedJson(result.uncaptured),
    kept: result.kept,
    stopped: orNull(result.stopped),
    taken_back: result.takenBack ? restoreJson(result.takenBack) : null,
  }
}

export function statusJson(status: results.StatusResult, place: SnapshotPlace | undefined) {
  return {
    target: status.target,
    timeline: status.timeline,
    home: status.home,
    backend: status.backend,
    head: status.head ? snapshotJson(status.head, place) : null,
    snapshots: status.snapshots,
    store_bytes: status.storeBytes,
    counts: countsJson(status.counts),
    changes: status.changes?.map(changeJson) ?? null,
    skipped: status.skipped.map(skippedJson),
    last_operation: status.lastOperation ? operationJson(status.lastOperation) : null,
    writer: status.writer ? { pid: status.writer.pid, purpose: status.writer.purpose } : null,
    running: status.running.map(runJson),
    interrupted: status.interrupted.map(({ run }) => runJson({ ...run, isInterrupted: true })),
  }
}

export function historyJson(history: results.HistoryResult) {
  return {
    path: changedPathJson(history.path),
    current_size: orNull(history.currentSize),
    directory: history.isDirectory,
    hidden: history.isHidden,
    moved_to: history.movedTo === undefined ? null : changedPathJson(history.movedTo),
    kept: keptCopyJson(history.kept),
    versions: history.versions.map(version => ({
      snapshot: version.snapshot.id,
      type: version.snapshot.type,
      label: orNull(version.snapshot.label),
      created_at: time(version.snapshot.createdAt),
      status: version.status,
      reason: orNull(version.reason),
      size: orNull(version.size),
      digest: hex(version.content),
      mode: octal(version.mode),
    })),
  }
}

export function coverageJson(coverage: results.CoverageResult, place: SnapshotPlace | undefined) {
  return {
    path: showPath(coverage.path) || '.',
    covered: coverage.covered,
    exists: orNull(coverage.exists),
    reason: orNull(coverage.reason),
    rule: orNull(coverage.rule),
    left_out: { count: coverage.leftOut.count, paths: coverage.leftOut.paths.map(skippedJson) },
    up_to_date: coverage.isUpToDate,
    current: coverage.current,
    ...{ versions: coverage.versions, not_read: coverage.notRead },
    may_be_in: coverage.mayBeIn.map(({ id }) => id),
    kept: keptCopyJson(coverage.kept),
    latest: coverage.latest ? snapshotJson(coverage.latest, place) : null,
  }
}
