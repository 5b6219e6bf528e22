/** How a verb becomes a command: the same options, help layout and handling for all of them. */
import { type Command, Option } from 'commander'
import { asSavepointError } from '../api/as-savepoint-error.ts'
import { SavepointError } from '../errors/errors.ts'
import { type CommonOptions, type Context, createContext, withProgram } from './context.ts'

export const groups = {
  protect: 'Protect:',
  look: 'Look:',
  back: 'Go back:',
  organise: 'Organise:',
  maintain: 'Maintain:',
  serve: 'Serve programs:',
  more: 'More:',
} as const

export interface Definition {
  name: string
  aliases?: string[]
  group: keyof typeof groups
  /** One line, for the list of commands. */
  summary: string
  /** The whole story, for --help. */
  description: string
  /** [command line without "savepoint ", what it does] */
  examples: [line: string, meaning: string][]
  usage?: string
  /** Ctrl-C asks the engine to stop at a safe point instead of ending the process. */
  cancellable?: boolean
  hidden?: boolean
}

/** What a command was called with. */
export interface Call<O = Record<string, unknown>> {
  options: O
  /** Words that are not options; those after `--` included. */
  words: string[]
  /** Those before and after `--`. */
  before: string[]
  after: string[]
  hasDashes: boolean
}

/** Answers the exit code; nothing is 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: most handlers have nothing to answer
export type Handler<O> = (context: Context, call: Call<O>) => Promise<number | void> | number | void

const commonOptions = [
  new Option('-t, --target <dir>', 'directory to work on (default: nearest protected)'),
  new Option('--adopt <old>', 'take over the timeline of a moved directory: its old path or its id'),
  new Option('--home <dir>', 'store (default: $SAVEPOINT_HOME, ~/.savepoint)'),
  new Option('--json', 'print the result as JSON'),
  new Option('-q, --quiet', 'only results, errors and what went wrong; of a listing only the names'),
  new Option('--no-color', 'no colours (as NO_COLOR=1)'),
  new Option('--no-pager', 'do not page long output'),
]
const helpOption = new Option('-h, --help', 'print this help')
for (const option of [...commonOptions, helpOption]) option.helpGroup('Common options:')

/** Last of all, so that help lists a command's own options first. */
export function addCommonOptions(command: Command): void {
  for (const option of commonOptions) command.addOption(option)
  command.addHelpOption(helpOption)
}

export function define(program: Command, definition: Definition): Command {
  const command = program
    .command(definition.name, { hidden: definition.hidden ?? false })
    .helpGroup(groups[definition.group])
    .summary(definition.summary)
    .description(definition.description)
  if (definition.aliases) command.aliases(definition.aliases)
  if (definition.usage) command.usage(definition.usage)
  const width = Math.max(...definition.examples.map(([line]) => line.length), 0)
  const lines = definition.examples.map(([line, meaning]) => `  savepoint ${line.padEnd(width)}  ${meaning}`.trimEnd())
  if (lines.length > 0) command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
  cancellableNames.set(command, definition.cancellable ?? false)
  return command
}

const cancellableNames = new WeakMap<Command, boolean>()

/** How the command ended; `program.ts` reads it. */
export const outcome: { exitCode: number; json: boolean; dieBy: NodeJS.Signals | undefined } = {
  exitCode: 0,
  json: false,
  dieBy: undefined,
}

/** Wraps a handler for commander's `action`. */
export function handle<O = Record<string, unknown>>(handler: Handler<O>) {
  return async function (this: Command, ..._values: unknown[]): Promise<void> {
    const common = commonOptionsOf(this)
    outcome.json = common.json
    const context = createContext(common, cancellableNames.get(this) ?? false)
    try {
      outcome.exitCode = (await handler(context, callOf<O>(this))) ?? 0
    } catch (error) {
      const signal = context.cancellation?.cause
      throw signal ? cancelledBy(signal, error) : hintedFor(context, error)
    } finally {
      context.close()
    }
    await context.output.flushed()
    const { failure } = context.output
    if (failure)
      throw new SavepointError('io.failed', `Cannot write the result: ${failure.message}`, { cause: failure })
  }
}

/** The hint with commands that work where the user stands. */
function hintedFor({ program }: Context, thrown: unknown): unknown {
  if (!(thrown instanceof SavepointError) || thrown.hint === undefined) return thrown
  const { code, message, hint, data } = thrown
  return new SavepointError(code, message, { hint: withProgram(hint, program), data, cause: thrown.cause ?? thrown })
}

/** What the engine threw because it was asked to stop, whatever it wrapped that in; other errors stay what they are. */
function cancelledBy(signal: NodeJS.Signals, thrown: unknown): unknown {
  const wrapped = thrown instanceof SavepointError && thrown.cause instanceof Error ? thrown.cause : undefined
  const error = [thrown, wrapped].map(asSavepointError).find(({ code }) => code === 'cancelled')
  if (!error) return thrown
  const { message, hint, data, cause } = error
  return new SavepointError('cancelled', message, { hint, data: { ...data, signal }, cause })
}

/** Options may stand before and after the verb; after wins, and a "no" on either side counts. */
function commonOptionsOf(command: Command): CommonOptions {
  const outer = command.parent?.opts() ?? {}
  const inner = command.opts()
  return {
    target: inner.target ?? outer.target,
    adopt: inner.adopt ?? outer.adopt,
    home: inner.home ?? outer.home,
    json: inner.json === true || outer.json === true,
    quiet: inner.quiet === true || outer.quiet === true,
    color: inner.color !== false && outer.color !== false,
    pager: inner.pager !== false && outer.pager !== false,
  }
}

function callOf<O>(command: Command): Call<O> {
  const words = command.args
  // Everything after the first `--` arrives as it is, so counting from the end finds where it began.
  const raw = (command.parent as (Command & { rawArgs: string[] }) | null)?.rawArgs ?? []
  const dashes = raw.indexOf('--')
  const count = dashes < 0 ? 0 : raw.length - dashes - 1
  const split = Math.max(0, words.length - count)
  return {
    options: command.opts() as O,
    words,
    before: words.slice(0, split),
    after: words.slice(split),
    hasDashes: dashes >= 0,
  }
}
