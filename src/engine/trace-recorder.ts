/**
 * Writes down what a run does while it does it: `exec.jsonl`, which has every event up to the last one whatever happens to
 * us, and the rows of the timeline, from which it is read. Secrets in arguments are hidden before anything is written.
 */
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isBeyondTrace } from '../model/destructive-filesystems.ts'
import { isWithin, joinRaw, type Raw, rawFromBytes, rawFromText, rawToText } from '../model/raw-path.ts'
import { type RedactPatterns, redactCommands } from '../model/redact.ts'
import { type Execution, FOREIGN_CALLS, hasFailed, VAGUE_CALLS } from '../model/trace.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import { emptyBatch, type TraceBatch } from '../timeline/trace-rows.ts'
import type { ExecEvent, ExitEvent, LostEvent, PathEvent, TraceEvent, UnmovedEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { noteSizes } from './event-sizes.ts'
import { execLine, exitLine, undoneLine } from './exec-lines.ts'
import { NotedChanges } from './noted-changes.ts'
import { OutsidePaths } from './outside-paths.ts'
import { writersOf } from './process-files.ts'
import type { TraceSummary } from './results.ts'
import { movesTarget } from './target-place.ts'
import { TreeTouches } from './tree-touches.ts'

/** How long rows may wait: each transaction takes the database from other commands for a moment. */
const FLUSH_MS = 1000

type RecorderContext = Pick<Context, 'db' | 'home' | 'timelineDir' | 'targetPath' | 'notice' | 'warn'>

export class TraceRecorder {
  private readonly ctx: RecorderContext
  private readonly run: string
  private readonly patterns: RedactPatterns
  private readonly onLines: (lines: string) => void
  private readonly target: Raw
  private readonly file: string
  private jsonl: number | undefined
  private readonly running = new Map<number, Execution>()
  private readonly noted = new NotedChanges()
  private readonly outside: OutsidePaths
  readonly trees = new TreeTouches((pid, path) => writersOf(pid, joinRaw(this.target, path)))
  private fresh: TraceEvent[] = []
  private batch: TraceBatch = emptyBatch()
  /** Executions of the batch, which has no row of theirs yet. */
  private readonly unsaved = new Set<Execution>()
  private readonly stopKeeping: () => void
  private timer: NodeJS.Timeout | undefined
  private commands = 0
  private failed = 0
  private lost = 0
  /** Of those: of which it is not known what they changed. */
  lostChanges = 0
  /** Which processes have made calls that cannot be told in what they execute now. */
  private readonly foreign = new Set<number>()
  private failure: Error | undefined
  private hasUnknown = false

  /** `onLines` gets what is written to exec.jsonl, for those who follow. */
  constructor(ctx: RecorderContext, run: string, patterns: RedactPatterns, onLines: (lines: string) => void) {
    this.ctx = ctx
    this.onLines = onLines
    this.run = run
    this.patterns = patterns
    this.target = rawFromBytes(ctx.targetPath)
    this.outside = new OutsidePaths([this.target, rawFromText(ctx.home)])
    this.file = join(ctx.timelineDir, 'runs', run, 'exec.jsonl')
    this.jsonl = this.attempt(() => openSync(this.file, 'a', 0o600))
    // What a capture may have seen is written before it; what comes afterwards is the next one's, also if it is the same.
    this.stopKeeping = ctx.db.events.beforeCaptures(() => {
      this.save()
      this.noted.forget()
    })
  }

  /** For a run that another process has recorded until now: what has not ended. */
  resume(executions: readonly Execution[]): void {
    for (const each of executions) this.running.set(each.id, each)
  }

  add(event: TraceEvent): void {
    this.fresh.push(event)
  }

  /** What was added goes to exec.jsonl now and to the timeline soon. */
  settle(): void {
    if (this.fresh.length === 0) return
    const events = this.fresh
    this.fresh = []
    const executions = events.filter(event => event.type === 'exec')
    const shown = this.redact(executions)
    let lines = ''
    for (const event of events) {
      if (event.type === 'exec') lines += this.addExecution(event, shown.get(event)!)
      else if (event.type === 'exit') lines += this.addEnd(event)
      else if (event.type === 'path') this.addPath(event)
      else if (event.type === 'lost') this.addLost(event)
      else if (event.type === 'undone') lines += this.undo(event.id)
      else if (event.type === 'unmoved') this.unmove(event)
      else if (event.type === 'kept' && event.ofOthers) this.addOthers(event.ofOthers, event.tree)
    }
    if (lines !== '') this.attempt(() => this.append(lines))
    if (lines !== '') this.onLines(lines)
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS)
  }

  private addLost({ count, pid, why }: LostEvent): void {
    this.lost += count
    if (why !== 'execution') this.lostChanges += count
    if (why === 'architecture' && !this.foreign.has(pid)) {
      for (const { id, pid: own } of this.running.values()) if (own === pid) this.note(id, FOREIGN_CALLS)
      this.foreign.add(pid)
    }
    if (why === 'watches')
      this.ctx.warn('not all directories could be watched (fs.inotify.max_user_watches): all are looked at instead')
  }

  private append(lines: string): void {
    if (this.jsonl === undefined) return
    // A purge has put another one in its place.
    if (fstatSync(this.jsonl).nlink === 0) {
      closeSync(this.jsonl)
      this.jsonl = undefined
      this.jsonl = openSync(this.file, 'a', 0o600)
    }
    writeSync(this.jsonl, lines)
  }

  /** Whether everything could be written, and it is known which paths were touched. */
  get isWhole(): boolean {
    return this.failure === undefined && !this.hasUnknown && !this.trees.isFull
  }

  /** The same, and nothing is missing until now. */
  get isComplete(): boolean {
    return this.isWhole && this.lostChanges === 0
  }

  /** Whether it is about a path of the target. */
  isInside({ path, to }: PathEvent): boolean {
    return this.relative(path) !== undefined || this.relative(to) !== undefined
  }

  /** Something to remember of an execution, beside what it was. */
  note(id: number, text: string): void {
    this.batch.notes.push({ id, text })
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS)
  }

  /** What was added until now is in the timeline when this returns. */
  save(): void {
    this.settle()
    this.flush()
  }

  /** Everything is written when this returns; nothing may come after it. */
  finish(): Pick<TraceSummary, 'commands' | 'failed' | 'outside' | 'removed' | 'lost'> {
    this.stopKeeping()
    this.save()
    clearTimeout(this.timer)
    if (this.jsonl !== undefined) this.attempt(() => closeSync(this.jsonl!))
    if (this.trees.hasVague) this.ctx.notice(VAGUE_CALLS)
    if (this.failure) this.ctx.notice(`the trace of this run is NOT complete: ${this.failure.message}`)
    return { commands: this.commands, failed: this.failed, ...this.outside.count(), lost: this.lost }
  }

  private flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const { batch } = this
    if (Object.values(batch).every(rows => rows.length === 0)) return
    this.batch = emptyBatch()
    this.unsaved.clear()
    noteSizes(this.target, batch.files)
    this.attempt(() => this.ctx.db.trace.add(this.run, batch))
  }

  /** A trace that cannot be written must not stop what is traced; it is said at the end. */
  private attempt<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      this.failure ??= error as Error
      return undefined
    }
  }

  private redact(executions: ExecEvent[]): Map<ExecEvent, Raw[]> {
    const words = executions.map(({ argv }) => argv.map(rawToText))
    const shown = redactCommands(words, this.patterns, () =>
      this.ctx.warn('the patterns of tracing.redact take too long: arguments of commands are not recorded'),
    )
    return new Map(executions.map((event, i) => [event, shown[i]!.map(rawFromText)]))
  }

  private addExecution(event: ExecEvent, argv: Raw[]): string {
    const { type, setuid, held, env, detached, ...rest } = event
    const execution: Execution = {
      ...rest,
      argv,
      run: this.run,
      endedAt: undefined,
      exitCode: undefined,
      signal: undefined,
      note: detached ? 'detached' : undefined,
    }
    this.commands++
    if (isBeyondTrace(event.argv)) this.hasUnknown = true
    const before = event.replaces === undefined ? undefined : this.running.get(event.replaces)
    if (before) this.end(before, { endedAt: event.at, exitCode: undefined, signal: undefined })
    this.running.set(event.id, execution)
    this.batch.executions.push(execution)
    this.unsaved.add(execution)
    const name = rawToText(event.program)
    if (setuid) this.ctx.warn(`${name} has no special rights inside this run (sudo and the like do not work)`)
    return execLine(this.run, event, argv)
  }

  private addEnd({ id, at, code, signal }: ExitEvent): string {
    const execution = this.running.get(id)
    if (!execution) return ''
    this.end(execution, { endedAt: at, exitCode: code, signal })
    this.trees.noteEnd(execution.pid, at)
    if (hasFailed(execution)) this.failed++
    // How it ended is missing.
    if (code === undefined && signal === undefined) this.lost++
    return exitLine(execution)
  }

  private end(execution: Execution, end: Pick<Execution, 'endedAt' | 'exitCode' | 'signal'>): void {
    Object.assign(execution, end)
    this.running.delete(execution.id)
    this.foreign.delete(execution.pid)
    // Otherwise its row will have its end.
    if (!this.unsaved.has(execution)) this.batch.ends.push({ id: execution.id, ...end, endedAt: end.endedAt! })
  }

  private undo(id: number): string {
    this.commands--
    this.running.delete(id)
    const at = this.batch.executions.findIndex(execution => execution.id === id)
    if (at >= 0) this.batch.executions.splice(at, 1)
    else this.batch.undone.push(id)
    return undoneLine(this.run, id)
  }

  private unmove({ op, exec, path: from, to: place, present }: UnmovedEvent): void {
    const [path, to] = [this.relative(from), this.relative(place)]
    this.trees.takeBack(path, to, present)
    this.noted.unmove(path)
    const isMeant = (event: NewEvent) =>
      event.op === op && event.exec === exec && event.path === path && event.to === to
    const at = this.batch.files.findLastIndex(isMeant)
    if (at >= 0) this.batch.files.splice(at, 1)
    else this.batch.unmoved.push({ op, exec, path, to })
  }

  private addOthers({ path, mtimeNs }: { path: Raw; mtimeNs: bigint }, tree: PathEvent['tree']): void {
    this.trees.of(tree).noteFound(this.relative(path)!, mtimeNs, tree?.came)
  }

  private addPath(event: PathEvent): void {
    const { at, op, pid, exec, path, to, existed, absent, directory, emptied, isUnknown, tree } = event
    const touches = this.trees.of(tree)
    if (isUnknown) touches.vague.note(event)
    // Making a directory that is there changes nothing; `mkdir -p` asks for each. Nor does removing what is not there.
    if (op === 'create' ? existed : absent && op !== 'write') return
    // A file that the shell opened for the whole command is no work of the command's; nor is the target itself one outside.
    const isOurs =
      movesTarget(event, this.target) || op === 'inherited' || (path !== undefined && isWithin(this.target, path))
    this.outside.note(event, isOurs)
    const file: NewEvent = {
      run: this.run,
      at,
      op,
      path: this.relative(path),
      to: this.relative(to),
      exec,
      pid,
      existed,
      directory,
      size: undefined,
      emptied,
    }
    if (file.path === undefined && file.to === undefined) return
    touches.note({ ...event, path: file.path, to: file.to })
    // What is done in a directory that was the target is no change of what is it now.
    if (tree && !tree.isPresent) return
    if (this.noted.isNew(file)) this.batch.files.push(file)
  }

  private relative(path: Raw | undefined): Raw | undefined {
    return path !== undefined && isWithin(path, this.target) ? path.slice(this.target.length + 1) : undefined
  }
}
