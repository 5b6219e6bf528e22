import { constants } from 'node:os'
import type { Command } from 'commander'
import { SavepointError } from '../../errors/errors.ts'
import type { RunResult } from '../../index.ts'
import { formatDuration, plural } from '../../model/format.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import type { Context } from '../context.ts'
import { define, handle, outcome } from '../define.ts'
import { runResultJson } from '../json.ts'
import { changeList } from '../render/changes.ts'
import { countsText, skippedText } from '../render/snapshot.ts'
import { createStyle, wantsColour } from '../style.ts'

const listed = 10
/** Deaths that the caller's shell should see as such; others would only leave a second core dump. */
const repeatable = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP'])

interface Options {
  unprotected?: boolean
  force?: boolean
}

export function register(program: Command): void {
  define(program, {
    name: 'run',
    group: 'protect',
    summary: 'run a command so that its work can be undone',
    description:
      'Captures the current directory, runs the command in it with your terminal, captures it again and says what ' +
      'changed. `savepoint undo` takes it all back. The exit code is the command’s (125: it was not started, ' +
      '126: not executable, 127: not found). With --json the summary is one line of JSON on stderr.',
    usage: '[options] [--] COMMAND [ARG…]',
    examples: [
      ['run -- claude', 'an agent, under protection'],
      ['run -- npm install', 'anything else'],
      ['run -t ~/project -- make', 'protect another directory'],
      ['undo', 'take back what it did'],
    ],
    cancellable: true,
  })
    .argument('<command...>', 'the command with its arguments')
    .option('--unprotected', 'run it even when the state before cannot be captured')
    .option('--force', 'also in $HOME, /, or a directory that was replaced')
    .passThroughOptions()
    .action(
      handle<Options>(async (context, { words, options }) => {
        const savepoint = await context.open({ create: true, force: options.force }).catch(notStarted)
        const result = await savepoint.run({
          command: words,
          unprotected: options.unprotected,
          onStart(_run, before) {
            if (before) context.notice(protectingText(savepoint.target, before))
            context.cancellation?.ignore()
          },
        })
        summarise(context, result, savepoint.subdirectory)
        if (result.signal === undefined) return result.exitCode
        const signal = result.signal as NodeJS.Signals
        if (repeatable.has(signal)) outcome.dieBy = signal
        return 128 + (constants.signals[signal] ?? 0)
      }),
    )
}

/** Whatever kept us from starting: the caller must be able to tell it from the command's own exit code. */
function notStarted(error: unknown): never {
  if (!(error instanceof SavepointError) || error.code === 'cancelled' || error.code === 'bug') throw error
  const { message, hint, data } = error
  throw new SavepointError('command.failed-to-start', `Cannot start the command: ${message}`, {
    hint,
    data,
    cause: error,
  })
}

function protectingText(target: string, { id, files, skippedCount }: Snapshot): string {
  const hole =
    skippedCount > 0 ? `; PARTIAL: ${plural('path', skippedCount)} not captured, see savepoint show ${id}` : ''
  return `protecting ${target} (${id}, ${plural('file', files)}${hole})`
}

/** On stderr: stdout belongs to the command. */
function summarise(context: Context, result: RunResult, base: Raw): void {
  if (context.options.json) process.stderr.write(`${JSON.stringify(runResultJson(result))}\n`)
  else if (!context.options.quiet) {
    const colour = wantsColour(process.stderr, process.env, context.options.color)
    const style = createStyle(colour, base, context.program)
    const { run, changes } = result
    const end = result.signal === undefined ? `exit ${result.exitCode}` : `killed by ${result.signal}`
    const took = run.endedAt === undefined ? '' : `, ${formatDuration(run.endedAt - run.startedAt)}`
    context.notice(`run ${run.id}: ${end}${took}; ${changesText(result)}`)
    if (result.after) process.stderr.write(skippedText(result.after.skipped, result.after.skippedCount, style))
    if (changes.length === 0) return
    process.stderr.write(changeList(changes, style, listed, style.command(`diff ${run.id} --name-status`)))
    const changed = changes.map(({ path }) => path)
    process.stderr.write(`To undo: ${style.bold(style.wayBack('undo', changed))}\n`)
  }
}

const changesText = ({ after, counts, changes }: RunResult) => {
  if (!after) return 'what it changed is not recorded'
  if (changes.length === 0) return 'nothing changed'
  const text = countsText(counts)
  return text === 'no changes' ? plural('change', changes.length) : text
}
