import { constants } from 'node:os'
import { type Command, Option } from 'commander'
import { asSavepointError } from '../../api/as-savepoint-error.ts'
import { runResultJson } from '../../api/json.ts'
import { lazyFace } from '../../api/lazy-face.ts'
import type { TracerName } from '../../config/config.ts'
import { type ErrorCode, SavepointError } from '../../errors/errors.ts'
import type { RunResult, Savepoint } from '../../index.ts'
import { formatDuration, plural } from '../../model/format.ts'
import type { Raw } from '../../model/raw-path.ts'
import { nameRunning, type Running } from '../../model/running.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import { canAsk, confirm } from '../confirm.ts'
import type { Context } from '../context.ts'
import { define, handle, outcome } from '../define.ts'
import { inherited } from '../inherited.ts'
import { changeList, changesText } from '../render/changes.ts'
import { goneText, madeText, unprotectedText } from '../render/gone.ts'
import { notDoneText, restoreText, undoHint } from '../render/restore.ts'
import { skippedText } from '../render/snapshot.ts'
import { createStyle, type Style, wantsColour } from '../style.ts'

const listed = 10
const tracers: TracerName[] = ['auto', 'seccomp', 'ptrace', 'ebpf', 'eslogger', 'none']
/** Deaths that the caller's shell should see as such; others would only leave a second core dump. */
const repeatable = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP'])

interface Options {
  unprotected?: boolean
  force?: boolean
  tracer?: TracerName
  allowIoUring?: boolean
  allowSudo?: boolean
  onFailure: 'keep' | 'ask' | 'rollback'
}

export function register(program: Command): void {
  define(program, {
    name: 'run',
    group: 'protect',
    summary: 'run a command so that its work can be undone',
    description:
      'Captures the current directory, runs the command in it with your terminal, captures it again and says what ' +
      'changed. With -t another directory is captured and protected; the command still runs in the current one. ' +
      '`savepoint undo` takes it all back. The exit code is the command’s (125: it was not started, ' +
      '126: not executable, 127: not found). With --json the summary is one line of JSON on stderr.',
    usage: '[options] [--] COMMAND [ARG…]',
    examples: [
      ['run -- claude', 'an agent, under protection'],
      ['run -- npm install', 'anything else'],
      ['run -t ~/project -- make -C ~/project', 'protect another directory: the command runs in the current one'],
      ['run --on-failure rollback -- ./migrate', 'take back what it did if it fails'],
      ['undo', 'take back what it did'],
    ],
    cancellable: true,
  })
    .argument('<command...>', 'the command with its arguments')
    .option('--unprotected', 'run it even when the state before cannot be captured, or nothing can be recorded')
    .option('--force', 'also in $HOME, /, or a directory that was replaced')
    .addOption(new Option('--tracer <name>', 'how commands are traced (default: tracing.tracer)').choices(tracers))
    .option('--allow-io-uring', 'let io_uring work inside, although its changes are not seen')
    .option('--allow-sudo', 'let sudo work inside: commands are not traced, changes are only watched')
    .addOption(
      new Option('--on-failure <what>', 'when the command fails, what it did is kept, taken back, or you are asked')
        .choices(['keep', 'ask', 'rollback'])
        .default('keep'),
    )
    .passThroughOptions()
    .action(
      handle<Options>(async (context, { words, options }) => {
        const opened = await context.open({ create: true, force: options.force }).catch(asSavepointError)
        const base = opened instanceof SavepointError ? '' : opened.subdirectory
        let isListed = false
        const ask = (result: RunResult) => {
          isListed = canAsk(context.options.json)
          return askToTakeBack(context, result, styleOf(context, base))
        }
        const result =
          opened instanceof SavepointError
            ? await runWithout(context, words, options, opened)
            : await runIn(context, opened, words, options, ask)
        summarise(context, result, styleOf(context, base), isListed)
        const relinked = context.relinkedText()
        if (relinked !== undefined) context.notice(relinked)
        if (result.signal === undefined) return result.exitCode
        const signal = result.signal as NodeJS.Signals
        if (repeatable.has(signal)) outcome.dieBy = signal
        return 128 + (constants.signals[signal] ?? 0)
      }),
    )
}

/** Of stderr: stdout belongs to the command. */
const styleOf = (context: Context, base: Raw): Style =>
  createStyle(wantsColour(process.stderr, process.env, context.options.color), base, context.program, context.undoStops)

const runIn = (
  context: Context,
  savepoint: Savepoint,
  command: string[],
  options: Options,
  ask: (result: RunResult) => Promise<boolean>,
) =>
  savepoint.run({
    command,
    unprotected: options.unprotected,
    tracer: options.tracer,
    allowIoUring: options.allowIoUring,
    allowSudo: options.allowSudo,
    onFailure: options.onFailure === 'ask' ? ask : options.onFailure,
    inherited,
    face: served => lazyFace(served, process.env),
    onStart(_run, before, isPending) {
      if (before) context.notice(protectingText(savepoint.target, before))
      if (isPending)
        context.notice(`protecting ${savepoint.target} (being captured; what is changed before that waits)`)
    },
    onLaunch: () => context.cancellation?.ignore(),
  })

/** Where nobody can be asked, nothing is taken back that somebody may want. Who is asked must see what it is about. */
async function askToTakeBack(context: Context, result: RunResult, style: Style): Promise<boolean> {
  if (!canAsk(context.options.json)) {
    context.notice('nobody can be asked here: what the run did is kept')
    return false
  }
  context.errors.write(changesOf(result, style))
  const what = `The command failed (${endText(result)}) after it changed ${plural('path', result.changes.length)}.`
  return confirm(`${what} Take it back?`)
}

/** Nothing is open. Only a home that cannot be used is what --unprotected is about, not a mistake in the command line. */
function runWithout(context: Context, command: string[], options: Options, error: SavepointError): Promise<RunResult> {
  if (options.unprotected && homeCodes.has(error.code)) return context.runUnrecorded(command, error)
  throw notStarted(error)
}

const homeCodes: ReadonlySet<ErrorCode> = new Set(['io.failed', 'disk.full', 'store.damaged', 'store.format'])

/** Whatever kept us from starting: the caller must be able to tell it from the command's own exit code. */
function notStarted(error: SavepointError): SavepointError {
  if (error.code === 'cancelled' || error.code === 'bug') return error
  const { message, hint, data } = error
  const without = homeCodes.has(error.code) ? '--unprotected starts it anyway, and nothing is recorded' : undefined
  return new SavepointError('command.failed-to-start', `Cannot start the command: ${message}`, {
    hint: [hint, without].filter(Boolean).join('. ') || undefined,
    data,
    cause: error,
  })
}

function protectingText(target: string, { id, files, skippedCount }: Snapshot): string {
  const hole =
    skippedCount > 0 ? `; PARTIAL: ${plural('path', skippedCount)} not captured, see savepoint show ${id}` : ''
  return `protecting ${target} (${id}, ${plural('file', files)}${hole})`
}

const changesOf = ({ run, changes }: RunResult, style: Style): string =>
  changeList(changes, style, listed, style.command(`diff ${run!.id} --name-status`))

/** `isListed`: what changed has been listed already. */
function summarise(context: Context, result: RunResult, style: Style, isListed: boolean): void {
  if (context.options.json) process.stderr.write(`${JSON.stringify(runResultJson(result))}\n`)
  else if (context.options.quiet) {
    // It is not as --on-failure said that it would be.
    if (result.takenBack) process.stderr.write(notDoneText(result.takenBack, style))
  } else {
    const { run, changes } = result
    // Nothing is recorded: that was said at the start.
    if (!run) return
    const took = run.endedAt === undefined ? '' : `, ${formatDuration(run.endedAt - run.startedAt)}`
    context.notice(`run ${run.id}: ${endText(result)}${took}; ${commandsText(result, style)}${outcomeText(result)}`)
    for (const text of [...traceTexts(result), ...keptTexts(result, style)]) context.notice(text)
    // Its files are not as it left them any more: how to undo was said to whoever did that.
    if (result.stopped !== undefined) {
      context.notice(`the run was stopped for \`savepoint ${result.stopped}\``)
      return
    }
    if (result.after) process.stderr.write(skippedText(result.after.skipped, result.after.skippedCount, style))
    if (result.gone.count > 0) process.stderr.write(`${goneText(result.gone, style)}\n`)
    process.stderr.write(unprotectedText(result.unprotected, style))
    process.stderr.write(madeText(result, style))
    if (result.takenBack) {
      const words = { done: 'Took it back, to', would: '', undo: undoHint([result.takenBack], style) }
      process.stderr.write(restoreText(result.takenBack, words, style))
      return
    }
    if (changes.length === 0 && result.movedTo === undefined) return
    if (!isListed) process.stderr.write(changesOf(result, style))
    const changed = [...changes.map(({ path }) => path), ...(result.movedTo === undefined ? [] : [''])]
    process.stderr.write(`To undo: ${style.bold(style.wayBack('undo', changed))}\n`)
  }
}

const endText = ({ signal, exitCode }: RunResult): string =>
  signal === undefined ? `exit ${exitCode}` : `killed by ${signal}`

const outcomeText = ({ after, counts, changes, gone, unprotected, hidden, uncaptured, movedTo }: RunResult) => {
  if (!after) return 'what it changed is not recorded'
  if (changes.length === 0 && movedTo !== undefined) return 'nothing changed but the place of the directory'
  if (changes.length === 0)
    return gone.count + unprotected.count + hidden.count + uncaptured.length > 0
      ? 'nothing that is protected changed'
      : 'nothing changed'
  return changesText(counts, changes)
}

function commandsText({ trace }: RunResult, style: Style): string {
  if (!trace) return ''
  const failed = trace.failed > 0 ? ` (${trace.failed} failed, see ${style.command('trace --failed')})` : ''
  const snapshots = trace.snapshots > 0 ? [`${plural('snapshot', trace.snapshots)} on the way`] : []
  const commands = trace.tracer === 'none' ? [] : [`${plural('command', trace.commands)}${failed}`]
  const parts = [...commands, ...snapshots].join(', ')
  return parts === '' ? '' : `${parts}; `
}

/** No other snapshot has them, so that nobody would look for them. */
function keptTexts({ run, kept: { files, snapshots } }: RunResult, style: Style): string[] {
  if (files === 0) return []
  const where = style.command(snapshots.length === 1 ? `show ${snapshots[0]}` : `snapshots ${run!.id}`)
  return [`${plural('file', files)} deleted or overwritten on the way ${files === 1 ? 'is' : 'are'} kept: ${where}`]
}

function traceTexts({ trace }: RunResult): string[] {
  if (!trace) return []
  const { tracer, outside, removed, lost, running } = trace
  return [
    ...(outside > 0 ? [outsideText(outside, removed)] : []),
    ...(lost > 0 ? [`the trace has holes: ${plural('event', lost)} not seen`] : []),
    ...(running.length > 0 ? [runningText(running, tellsCommands(tracer))] : []),
  ]
}

function outsideText(outside: number, removed: number): string {
  const where = 'outside of the protected directory'
  const [what, of] =
    removed === outside ? ['deleted', ''] : ['changed', removed > 0 ? `, ${removed} of them deleted` : '']
  return `${plural('path', outside)} ${what} ${where}${of}: not recoverable by us`
}

const tellsCommands = (tracer: string): boolean => tracer !== 'none' && tracer !== 'eslogger'

function runningText(running: readonly Running[], isTraced: boolean): string {
  const { names, kill } = nameRunning(running)
  const go = running.length === 1 ? 'goes' : 'go'
  const traced = isTraced ? `, later commands are (savepoint trace)` : ''
  return `${names} of this run ${go} on: later changes are not part of it${traced}; to end that: ${kill}`
}
