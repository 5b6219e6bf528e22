/**
 * Makes a bundle of a recording that has ended: looks at each path again, finds the contents, and writes them. What is only read and
 * what git has anyway is told without its content.
 */
import { type RecordLog, readRecordLog, SEEN } from '../tracers/record-log.ts'
import { pathFields, pathText } from './bundle-paths.ts'
import { BundleWriter } from './bundle-writer.ts'
import type { Content } from './content.ts'
import { CHANGES, Contents, type Item, type SkipReason } from './contents.ts'
import { isChanged, kindOf } from './entries.ts'
import { type GitFile, GitPaths, gitInfo } from './git-info.ts'
import { isTheirs, itemsOf } from './items.ts'
import type { FileRecord, ManifestTail, SkippedRecord, State } from './manifest.ts'
import { OpenedDirs } from './opened-dirs.ts'
import { operationsOf } from './operations.ts'
import { type RecordingStart, readEnd, readStart } from './recording.ts'
import type { RecordResult } from './results.ts'
import { SettledLooks } from './settled-looks.ts'
import { isFile, sameState, toState, typeOf } from './states.ts'

const MAX_SKIPPED = 10_000
const USES = SEEN.read | SEEN.executed | CHANGES

export interface FinishOptions {
  /** Of the recording. */
  directory: string
  /** Where the bundle is to be; absolute. */
  output: string
  env: NodeJS.ProcessEnv
  /** false: without the quick way for paths that were only looked at. */
  settles?: boolean
  onProgress?: ((files: number) => void) | undefined
}

export async function finishRecording(options: FinishOptions): Promise<RecordResult> {
  const start = readStart(options.directory)
  const log = readRecordLog(`${options.directory}/log`, options.settles ?? true)
  const git = new GitPaths()
  // git looks while we do.
  const asked = git.load(log.paths.keys(), options.env)
  const opened = new OpenedDirs(directory => isTheirs(log, directory))
  try {
    return await finishOpened(options, start, log, opened, git, asked)
  } finally {
    opened.close()
  }
}

async function finishOpened(
  options: FinishOptions,
  start: RecordingStart,
  log: RecordLog,
  opened: OpenedDirs,
  git: GitPaths,
  asked: Promise<void>,
): Promise<RecordResult> {
  const settled = new SettledLooks(log.settled)
  const items = itemsOf(log, start, opened)
  await asked
  // What lies in directories that were moved is known only now.
  if (items.length > log.paths.size)
    await git.load(
      items.map(({ path }) => path),
      options.env,
    )
  const writer = new BundleWriter(options.output, items.length + settled.count)
  try {
    return new Finisher(options, start, log, items, settled, git, writer).run()
  } catch (error) {
    writer.abandon()
    throw error
  }
}

class Finisher {
  private readonly skipped: SkippedRecord[] = []
  private skippedCount = 0
  private readonly missing = new Set<SkipReason>()
  private readonly counts = { added: 0, modified: 0, deleted: 0, otherwise: 0 }
  private readonly contents: Contents
  private readonly options: FinishOptions
  private readonly start: RecordingStart
  private readonly log: RecordLog
  private readonly items: Item[]
  private readonly settled: SettledLooks
  private readonly git: GitPaths
  private readonly writer: BundleWriter

  constructor(
    options: FinishOptions,
    start: RecordingStart,
    log: RecordLog,
    items: Item[],
    settled: SettledLooks,
    git: GitPaths,
    writer: BundleWriter,
  ) {
    this.options = options
    this.start = start
    this.log = log
    this.items = items
    this.settled = settled
    this.git = git
    this.writer = writer
    this.contents = new Contents(writer, log, options.directory, items, (item, side, reason) =>
      this.skip(item, side, reason),
    )
  }

  run(): RecordResult {
    const { start, writer } = this
    const end = readEnd(this.options.directory)
    const { path: start_cwd, path_bytes } = pathFields(start.cwd)
    writer.begin({
      command: start.command,
      exit_status: end?.code ?? null,
      signal: end?.signal ?? null,
      start_cwd,
      ...(path_bytes === undefined ? {} : { start_cwd_bytes: path_bytes }),
      uid: start.uid,
      gid: start.gid,
      started_at: new Date(start.startedAt).toISOString(),
      duration_ms: end?.durationMs ?? 0,
      recorded: start.recorded,
    })
    this.writeFiles()
    const because = this.incompleteBecause(end?.left ?? 0, end !== undefined)
    writer.commit(() => this.tail(because))
    return {
      output: this.options.output,
      files: this.items.length + this.settled.count,
      blobs: writer.blobCount,
      ...this.counts,
      skipped: this.skippedCount,
      lostEvents: this.log.lost,
      incompleteBecause: because,
      exitStatus: end?.code ?? null,
      signal: end?.signal ?? null,
    }
  }

  private writeFiles(): void {
    let done = 0
    const progress = (files: number) => {
      done += files
      this.options.onProgress?.(done)
    }
    const writeLooks = (text: Buffer, files: number) => {
      this.writer.filesText(text, files)
      progress(files)
    }
    for (const item of this.items) {
      this.settled.writeBefore(item.path, writeLooks)
      this.writer.file(this.record(item))
      progress(1)
    }
    this.settled.writeBefore(undefined, writeLooks)
  }

  private record(item: Item): FileRecord {
    const git = this.git.of(item)
    // Where nothing could be looked at in the beginning either, nothing is missing.
    if (item.unseen && (item.before || item.as & CHANGES)) this.skip(item, 'after', 'unseen')
    if ((item.as & CHANGES) === 0 && sameState(item.before, item.after)) return this.unchanged(item, git)
    const before = toState(this.contents.stateBefore(item))
    const after = toState(item.after)
    if (before.exists && !after.exists) after.tombstone = true
    const oid = this.putContents(item, git, before, after)
    this.count({ before, after })
    return {
      ...whatOf(item),
      before,
      after,
      git: gitInfo(item, git, oid),
    }
  }

  /** Most paths of most recordings: one state for both. */
  private unchanged(item: Item, git: GitFile | undefined): FileRecord {
    const state = toState(item.before)
    const oid = this.putUnchanged(item, git, state)
    return {
      ...whatOf(item),
      before: state,
      // What was made or deleted in a directory moves its time.
      after: typeOf(item.before ?? { mode: 0 }) === 'directory' ? toState(item.after) : state,
      git: gitInfo(item, git, oid),
    }
  }

  /** Fills in where the contents are. Returns what git would call the content at the end, if that was read. */
  private putContents(item: Item, git: GitFile | undefined, before: State, after: State): string | undefined {
    const isUnchanged = sameState(item.before, item.after)
    const algorithm = git?.isTracked ? git.algorithm : undefined
    // What another name of the file made of its attributes takes a content to be undone.
    if (isFile(item.before) && (item.as & USES || (!isUnchanged && this.contents.isAtHand(item.before, item))))
      using(this.contents.openBefore(item), content => {
        Object.assign(before, this.contents.store(item, 'before', content))
        // Somebody else may have changed it between: it is as long as what was saved.
        before.size = content.size
      })
    let oid: string | undefined
    const isWritten = (item.as & (SEEN.written | SEEN.moved)) !== 0 || !isUnchanged
    if (isFile(item.after) && isWritten && !item.unseen)
      using(this.contents.openAfter(item, algorithm), content => {
        oid = content.oid
        Object.assign(after, this.contents.store(item, 'after', content))
        after.size = content.size
      })
    return oid
  }

  private putUnchanged(item: Item, git: GitFile | undefined, state: State): string | undefined {
    const isUsed = (item.as & USES) !== 0
    // The index remembers what it has seen: most files that are only looked at need not be read to know.
    if (!isFile(item.before) || (!isUsed && (git?.committed === undefined || git.isKnownClean))) return undefined
    let oid: string | undefined
    using(this.contents.openBefore(item, git?.committed === undefined ? undefined : git.algorithm), content => {
      oid = content.oid
      if (!isUsed) return
      const isClean = oid !== undefined && oid === git?.committed
      Object.assign(state, isClean ? { sha256: content.sha256 } : this.contents.store(item, 'before', content))
    })
    return oid
  }

  private count(states: Pick<FileRecord, 'before' | 'after'>): void {
    if (!isChanged(states)) return
    const kind = kindOf(states)
    this.counts[kind === 'added' || kind === 'modified' || kind === 'deleted' ? kind : 'otherwise']++
  }

  private skip(item: Item, side: SkippedRecord['state'], reason: SkipReason): void {
    this.skippedCount++
    if (item.as & CHANGES || reason === 'no-space') this.missing.add(reason)
    if (this.skipped.length < MAX_SKIPPED)
      this.skipped.push({ ...pathFields(item.path), ...(side ? { state: side } : {}), reason })
  }

  private incompleteBecause(left: number, isEnded: boolean): string[] {
    const { lost, complete } = this.log
    return [
      ...(isEnded ? [] : ['the recording was interrupted']),
      ...(complete || left > 0 || !isEnded ? [] : ['the tracer ended before the command']),
      ...(lost > 0 ? [`${lost} events were lost`] : []),
      ...(left > 0 ? [`${left} processes of the command went on`] : []),
      ...(this.missing.has('no-space') || this.writer.isFull ? ['the disk was full'] : []),
      ...(this.missing.has('not-saved') || this.missing.has('unstable') || this.missing.has('unreadable')
        ? ['contents of changed files are missing: see skipped']
        : []),
      ...(this.missing.has('unseen') ? ['changed paths could not be looked at in the end: see skipped'] : []),
    ]
  }

  private tail(because: string[]): ManifestTail {
    const { head } = this.start
    return {
      git_repositories: this.git.repositories.map(({ root, head: now }) => ({
        root: pathText(root).text,
        head: now ?? null,
        ...(head?.root === root ? { head_before: head.commit } : {}),
      })),
      skipped: this.skipped,
      skipped_count: this.skippedCount,
      not_recorded: { ignored: this.log.ignored, of_others: this.log.foreign },
      lost_events: this.log.lost,
      complete: because.length === 0,
      incomplete_because: because,
    }
  }
}

function using(content: Content | undefined, use: (content: Content) => void): void {
  if (!content) return
  try {
    use(content)
  } finally {
    content.close()
  }
}

const whatOf = ({ path, as }: Item): Pick<FileRecord, 'path' | 'path_bytes' | 'operations' | 'inherited'> => ({
  ...pathFields(path),
  operations: operationsOf(as),
  ...(as & SEEN.inherited ? { inherited: true } : {}),
})
