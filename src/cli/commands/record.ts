import { constants } from 'node:os'
import { type Command, Option } from 'commander'
import { SavepointError } from '../../errors/errors.ts'
import type { RecordResult } from '../../index.ts'
import { plural } from '../../model/format.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'
import { define, handle, outcome } from '../define.ts'
import { inherited } from '../inherited.ts'

/** Deaths that the caller's shell should see as such; others would only leave a second core dump. */
const repeatable = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP'])

interface Options {
  output?: string
  snapshotDir?: string
  record: 'all' | 'changes'
  force?: boolean
  finish?: string
}

export function register(program: Command): void {
  define(program, {
    name: 'record',
    group: 'protect',
    summary: 'run a command, save what it read and changed',
    description:
      'Runs the command with your terminal, and writes a bundle: a directory with manifest.json and blobs.parquet that tells every ' +
      'path the command looked at or changed, before and after. Nothing is scanned, no timeline is needed. What lies in .git, what ' +
      'ignore.json names, and files of other users that you cannot write are not recorded. The exit code is the command’s (125: it was ' +
      'not started; 13: it cannot be traced here). With --json the summary is one line of JSON on stderr.',
    usage: '-o BUNDLE [options] [--] COMMAND [ARG…]',
    examples: [
      ['record -o build.bundle -- make', 'everything that it reads and changes'],
      ['record --record=changes -o npm.bundle -- npm ci', 'only what it changes; costs nearly nothing'],
      ['bundle show --changed build.bundle', 'what changed'],
      ['bundle restore --before --in-place build.bundle', 'take it back'],
    ],
    cancellable: true,
  })
    .argument('[command...]', 'the command with its arguments')
    .option('-o, --output <bundle>', 'the directory to write; must not exist')
    .addOption(new Option('--snapshot-dir <bundle>', 'the same as --output'))
    .addOption(
      new Option('--record <what>', 'everything it looks at, or only what it changes')
        .choices(['all', 'changes'])
        .default('all'),
    )
    .option('--force', 'replace a bundle that is there')
    .option('--finish <recording>', 'write the bundle of a recording that was interrupted')
    .passThroughOptions()
    .action(
      handle<Options>(async (context, { words, options }) => {
        const output = options.output ?? options.snapshotDir
        if (output === undefined || output === '')
          throw new SavepointError('usage', 'Cannot record: no bundle is named', {
            hint: 'Say where to write it: -o BUNDLE',
          })
        if ((words.length === 0) === (options.finish === undefined))
          throw new SavepointError('usage', 'Cannot record: no command is named, or one with --finish', {
            hint: 'savepoint record -o BUNDLE -- COMMAND…',
          })
        const result = await recordInto(context, output, words, options)
        summarise(context, result)
        if (options.finish !== undefined) return 0
        if (result.signal === null) return result.exitStatus ?? 1
        const signal = result.signal as NodeJS.Signals
        if (repeatable.has(signal)) outcome.dieBy = signal
        return 128 + (constants.signals[signal] ?? 0)
      }),
    )
}

async function recordInto(
  context: Context,
  output: string,
  command: string[],
  options: Options,
): Promise<RecordResult> {
  const engine = await import('../../record/record.ts')
  const common = { ...context.engineOptions(), output, force: options.force === true }
  if (options.finish !== undefined) return engine.finishAbandoned(options.finish, common)
  return engine.record({
    ...common,
    command,
    recorded: options.record,
    inherited,
    onStart: () => context.cancellation?.ignore(),
  })
}

/** On stderr: stdout belongs to the command. */
function summarise(context: Context, result: RecordResult): void {
  if (context.options.json) {
    process.stderr.write(`${JSON.stringify(recordResultJson(result))}\n`)
    return
  }
  const { output, files, blobs, added, modified, deleted, otherwise, skipped, incompleteBecause } = result
  const others = otherwise > 0 ? `, ${otherwise} otherwise changed` : ''
  const changed = `${added} added, ${modified} modified, ${deleted} deleted${others}`
  context.notice(
    `recorded ${plural('path', files)} (${changed}) and ${plural('content', blobs)} into ${quoteWord(output)}`,
  )
  if (skipped > 0) context.notice(`${plural('content', skipped)} could not be stored: see skipped in the manifest`)
  if (incompleteBecause.length > 0) context.notice(`the bundle is INCOMPLETE: ${incompleteBecause.join('; ')}`)
}

const recordResultJson = ({
  output,
  files,
  blobs,
  added,
  modified,
  deleted,
  otherwise,
  skipped,
  ...rest
}: RecordResult) => ({
  bundle: output,
  files,
  blobs,
  counts: { added, modified, deleted, otherwise_changed: otherwise },
  skipped,
  lost_events: rest.lostEvents,
  complete: rest.incompleteBecause.length === 0,
  incomplete_because: rest.incompleteBecause,
  exit_status: rest.exitStatus,
  signal: rest.signal,
})
