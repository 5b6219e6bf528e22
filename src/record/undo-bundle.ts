/** Before a bundle is restored in place: what will be replaced becomes a bundle of its own, which takes it back. */
import { existsSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { joinRaw, type Raw, rawToBytes, showPath } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import { withAllBelow } from '../store/tree-lookup.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import { aclGroup } from './acl-group.ts'
import { pathFields, pathText } from './bundle-paths.ts'
import { BundleWriter } from './bundle-writer.ts'
import { Content, Unstable } from './content.ts'
import type { State, StateType } from './manifest.ts'
import { OpenedDirs } from './opened-dirs.ts'
import { Looks, toState, typeOf } from './states.ts'
import { timeText } from './time-text.ts'

export interface Planned {
  /** Absolute. */
  directory: Raw
  plan: RestorePlan
  store: Store
  shaOf(content: string): string | undefined
}

const types: Partial<Record<Entry['kind'], StateType>> = {
  file: 'file',
  dir: 'directory',
  link: 'symlink',
  fifo: 'fifo',
}

/** Where it is written: beside the bundle, under the first name that is free. */
export function undoName(bundle: string): string {
  for (let i = 1; ; i++) {
    const name = `${bundle}.undo${i === 1 ? '' : i}`
    if (!existsSync(name)) return name
  }
}

/** Throws, with nothing left behind, when something that will be replaced cannot be kept. */
export function writeUndoBundle(output: string, command: string[], startCwd: Raw, planned: readonly Planned[]): void {
  const paths = new Map<Raw, { wanted: Entry | undefined; of: Planned }>()
  for (const each of planned) collect(each, paths)
  const writer = new BundleWriter(output, paths.size)
  const opened = new OpenedDirs(() => true)
  try {
    const { path: start_cwd, path_bytes } = pathFields(startCwd)
    writer.begin({
      command,
      exit_status: 0,
      signal: null,
      start_cwd,
      ...(path_bytes === undefined ? {} : { start_cwd_bytes: path_bytes }),
      uid: process.getuid?.() ?? 0,
      gid: process.getgid?.() ?? 0,
      started_at: new Date().toISOString(),
      duration_ms: 0,
      recorded: 'changes',
    })
    const looks = new Looks(opened)
    for (const [path, { wanted, of }] of [...paths].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const before = liveState(writer, looks.stateAt(path), path)
      const after = wantedState(wanted, of)
      if (before.exists && !after.exists) after.tombstone = true
      const operations = after.exists ? (['write'] as const) : (['delete'] as const)
      writer.file({ ...pathFields(path), operations: [...operations], before, after, git: { in_repo: false } })
    }
    writer.commit(() => ({
      git_repositories: [],
      skipped: [],
      skipped_count: 0,
      not_recorded: { ignored: 0, of_others: 0 },
      lost_events: 0,
      complete: true,
      incomplete_because: [],
    }))
  } catch (error) {
    writer.abandon()
    throw error
  } finally {
    opened.close()
  }
}

function collect(of: Planned, paths: Map<Raw, { wanted: Entry | undefined; of: Planned }>): void {
  const absolute = (path: Raw) => joinRaw(of.directory === '/' ? '' : of.directory, path)
  const note = (path: Raw, wanted: Entry | undefined) => {
    const whole = absolute(path)
    paths.set(whole.startsWith('/') ? whole : `/${whole}`, { wanted, of })
  }
  for (const action of of.plan.actions) {
    if (action.action === 'delete' || action.action === 'replace')
      for (const { path } of withAllBelow(of.store, { path: action.path, entry: action.live })) note(path, undefined)
    if (action.action === 'metadata') note(action.path, action.entry)
    if (action.action === 'create' || action.action === 'replace')
      for (const { path, entry } of withAllBelow(of.store, { path: action.path, entry: action.entry }))
        note(path, entry)
  }
}

function liveState(writer: BundleWriter, seen: ReturnType<Looks['stateAt']>, path: Raw): State {
  if (seen === 'unseen') throw Object.assign(new Error('it cannot be looked at'), { code: 'EACCES' })
  const state = toState(seen)
  if (!seen || typeOf(seen) !== 'file') return state
  const content = openNow(path)
  try {
    return { ...state, ...writer.put(`before:${pathFields(path).path}`, content), size: content.size }
  } finally {
    content.close()
  }
}

function openNow(path: Raw): Content {
  try {
    return new Content(rawToBytes(path), undefined, true)
  } catch (error) {
    // It was there a moment ago.
    const isGone = errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' || errnoOf(error) === 'ELOOP'
    if (isGone || error instanceof Unstable) throw new Unstable(`somebody changes ${showPath(path)} just now`)
    throw error
  }
}

/** Without its content: the bundle that is restored has that. */
function wantedState(entry: Entry | undefined, of: Planned): State {
  const type = entry && types[entry.kind]
  if (!entry || type === undefined) return { exists: false }
  const { mode, uid, gid } = entry
  const group = aclGroup(mode, entry.xattrs)
  const state: State = { exists: true, type, mode, uid, gid, mtime: timeText(entry.mtimeNs) }
  if (group !== undefined) state.group_mode = group
  if (type === 'symlink') {
    const { text, bytes } = pathText(entry.target)
    state.target = text
    if (bytes !== undefined) state.target_bytes = bytes
  }
  if (type !== 'file') return state
  const sha256 = of.shaOf(entry.content)
  return { ...state, size: entry.size, ...(sha256 === undefined ? {} : { sha256 }) }
}
