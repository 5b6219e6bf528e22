/** The first step of a restore: everything new is written into the stage. Nothing of the target is touched. */
import { errnoOf } from '../../errors/errors.ts'
import type { Entry } from '../../model/entry.ts'
import { joinRaw, parentOf, type Raw, rawToBytes } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { Store } from '../../store/store.ts'
import { withAllBelow } from '../../store/tree-lookup.ts'
import { applyMetadata, ContentWriter } from './content-writer.ts'
import type { LeftAlone } from './hidden.ts'
import type { RestorePlan } from './restore-plan.ts'
import type { Needs, WhatHolds } from './restore-preflight.ts'

/** Regular files that were just written, by inode: their content is known. */
export type WrittenFiles = Map<bigint, { entry: Entry; ctimeNs: bigint }>

export interface StageOptions {
  store: Store
  root: number
  plan: RestorePlan
  /** Name of the stage directory: recorded in the journal before. */
  stage: Raw
  onProgress: (done: { files: number; bytes: number; totalFiles: number; totalBytes: number }) => void
  needs: Needs
  whatHolds?: WhatHolds
  /** Paths that become hard links later: not written. */
  links: ReadonlyMap<Raw, Raw>
  /** Filled: what was written, and paths whose owner, mode or xattrs could not be set. */
  written: WrittenFiles
  left: LeftAlone[]
}

/** Where the entry of the plan's action with this index is staged. ext4 chooses the place on disk by the name: see `spread`. */
export const stagedPath = (stage: Raw, index: number): Raw => joinRaw(stage, `${stage.slice(-UNIQUE)}-${index}`)
const UNIQUE = 8

export async function stageActions(options: StageOptions): Promise<void> {
  const { needs } = options
  const done = { files: 0, bytes: 0, totalFiles: needs.files, totalBytes: needs.bytes }
  const writer = new ContentWriter(options.store, options.root, (files, bytes) => {
    done.files += files
    done.bytes += bytes
    options.onProgress(done)
  })
  const dirs: Staged[] = []
  for (const [index, action] of options.plan.actions.entries()) {
    if (action.action !== 'create' && action.action !== 'replace') continue
    const top = stagedPath(options.stage, index)
    for (const { path, entry } of withAllBelow(options.store, { path: action.path, entry: action.entry }))
      stageEntry(options, writer, dirs, top + path.slice(action.path.length), path, entry)
  }
  await writer.write()
  // Modes of directories last and from below: a read-only one must be filled first. The top of each staged tree keeps
  // 0700 until it is in place, because moving a directory needs write permission on it.
  for (const dir of dirs.reverse()) if (parentOf(dir.at) !== options.stage) setMetadata(options, dir)
}

interface Staged {
  at: Raw
  /** Where it is meant to be. */
  path: Raw
  entry: Entry
}

function stageEntry(
  options: StageOptions,
  writer: ContentWriter,
  dirs: Staged[],
  at: Raw,
  path: Raw,
  entry: Entry,
): void {
  const { root, written, left } = options
  if (entry.kind === 'unknown' || options.links.has(path)) return
  if (entry.kind === 'file') {
    writer.add(at, entry, stat => {
      written.set(stat.ino, { entry, ctimeNs: stat.ctimeNs })
      if (stat.refused) left.push({ path, why: 'attributes' })
    })
    return
  }
  if (entry.kind === 'dir') {
    addon.mkdirAt(root, at, 0o700)
    dirs.push({ at, path, entry })
    return
  }
  if (entry.kind === 'link') addon.symlinkAt(rawToBytes(entry.target), root, at)
  else if (!makeSpecial(root, at, entry)) {
    left.push({ path, why: 'refused' })
    return
  }
  setMetadata(options, { at, path, entry })
}

/** False when the system does not let this user make it (device nodes need root). */
function makeSpecial(root: number, at: Raw, entry: Entry): boolean {
  const type = entry.kind === 'fifo' ? 0o010000 : entry.kind === 'char' ? 0o020000 : 0o060000
  try {
    addon.mknodAt(root, at, type | 0o600, entry.rdevMajor, entry.rdevMinor)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EPERM') return false
    throw error
  }
}

function setMetadata({ root, left }: StageOptions, { at, path, entry }: Staged): void {
  if (applyMetadata(root, at, entry)) left.push({ path, why: 'attributes' })
}
