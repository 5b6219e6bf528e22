import type { Command } from 'commander'
import type { Frame } from '../../api/client.ts'
import type { Operation } from '../../api/operation.ts'
import { type ErrorCode, SavepointError } from '../../errors/errors.ts'
import type { OpenOptions } from '../../index.ts'
import { signalNumbers } from '../cancellation.ts'
import type { Context } from '../context.ts'
import { type Call, define, handle } from '../define.ts'

export function register(program: Command): void {
  define(program, {
    name: 'ctl',
    group: 'serve',
    summary: 'ask for one operation, as programs do',
    description:
      'Asks the process that serves this directory, a daemon or a live run, for an operation of docs/api.md, or carries it ' +
      'out itself where there is none. Parameters are key=value (several times for a list) or one JSON object. The answer is ' +
      'JSON; what `exec` runs writes to your terminal, and its exit code is passed on. Without an operation it lists them, and ' +
      '`help OP` says what one takes.',
    usage: "[OP [key=value…|'{…}'] [-- COMMAND…]]",
    examples: [
      ['ctl', 'which operations there are'],
      ['ctl help rollback', 'what it does, and its parameters'],
      ['ctl head', 'the present snapshot'],
      ['ctl snapshot label=before', 'take one'],
      [`ctl rollback '{"snapshot":"before","dry_run":true}'`, 'parameters as JSON'],
      ['ctl exec -- npm test', 'run a command under protection'],
      ['ctl subscribe', 'watch what happens'],
    ],
    cancellable: true,
  })
    .argument('[words...]', 'operation and parameters')
    .action(
      handle(async (context, call) => {
        const { operations, findOperation } = await import('../../api/table.ts')
        const [name, ...words] = call.before
        if (name === undefined || (name === 'help' && words.length === 0)) return list(context, operations)
        if (name === 'help') return explain(context, findOperation(words[0]!))
        const operation = findOperation(name)
        const input = await inputOf(operation, words, call)
        return ask(context, operation, input)
      }),
    )
}

function list(context: Context, operations: readonly Operation[]): void {
  const width = Math.max(...operations.map(({ name }) => name.length))
  if (context.options.json) context.json(operations.map(({ name, summary, effect }) => ({ name, summary, effect })))
  else if (context.options.quiet) context.lines(operations.map(({ name }) => name))
  else context.lines(operations.map(({ name, summary }) => `${name.padEnd(width)}  ${summary}`))
}

async function explain(context: Context, operation: Operation): Promise<void> {
  const { inputSchema, parametersOf } = await import('../../api/table.ts')
  const { name, summary, effect } = operation
  if (context.options.json) return context.json({ name, summary, effect, parameters: inputSchema(operation) })
  const parameters = parametersOf(operation)
  context.line(`${name}: ${summary}`)
  if (parameters.length === 0) return context.line('It takes no parameters')
  const width = Math.max(...parameters.map(each => each.name.length))
  const types = parameters.map(({ type, isRequired }) => `${type}${isRequired ? ' (required)' : ''}`)
  const typeWidth = Math.max(...types.map(({ length }) => length))
  context.lines(
    parameters.map((each, i) =>
      `  ${each.name.padEnd(width)}  ${types[i]!.padEnd(typeWidth)}  ${each.description ?? ''}`.trimEnd(),
    ),
  )
}

async function inputOf(operation: Operation, words: string[], { after, hasDashes }: Call): Promise<Frame> {
  const { checkInput } = await import('../../api/table.ts')
  const { inputFromWords } = await import('../../api/words.ts')
  const input = inputFromWords(operation, words)
  if (hasDashes && after.length > 0) {
    if ('cmd' in input)
      throw new SavepointError('usage', `Cannot ${operation.name}: two commands are given, as cmd and after --`, {
        hint: 'Leave out one of them',
      })
    input.cmd = after
  }
  checkInput(operation, input)
  return input
}

async function ask(context: Context, operation: Operation, input: Frame): Promise<number | undefined> {
  const { callLive } = await import('../../api/call-live.ts')
  const onFrame = (frame: Frame) => show(context, frame)
  const last = await callLive(whileRead(context), operation, input, onFrame)
  if ('error' in last) throw toError(last.error as ErrorFrame)
  const { ok: _, ...flat } = last
  if (operation.starts === 'attached') {
    if (context.options.json) context.output.write(`${JSON.stringify(last)}\n`)
    const cause = flat.stopped === null ? undefined : context.cancellation?.cause
    // Who pressed Ctrl-C is told that, not how the command took it.
    return cause === undefined ? (flat.exit as number) : 128 + (signalNumbers[cause] ?? 2)
  }
  // What it followed was told line by line.
  if (!operation.follows?.(input)) context.json(operation.isFlat ? flat : last.result)
  return undefined
}

/** When nobody reads any more (`| head`), what is followed is left, and what runs is stopped: nobody would ever see its end. */
function whileRead(context: Context): OpenOptions {
  const options = context.engineOptions()
  const gone = new AbortController()
  process.stdout.once('error', () => gone.abort())
  return { ...options, signal: AbortSignal.any([gone.signal, ...(options.signal ? [options.signal] : [])]) }
}

interface ErrorFrame {
  code: ErrorCode
  message: string
  hint?: string
  data?: Record<string, unknown>
}

const toError = ({ code, message, hint, data }: ErrorFrame): SavepointError =>
  new SavepointError(code, message, { hint, data })

function show(context: Context, frame: Frame): void {
  const stream = 'stdout' in frame ? 'stdout' : 'stderr' in frame ? 'stderr' : undefined
  if (typeof frame.notice === 'string') context.notice(frame.notice)
  else if ('progress' in frame || 'unstoppable' in frame) return
  else if (context.options.json || stream === undefined) context.output.write(`${JSON.stringify(frame)}\n`)
  else process[stream].write(Buffer.from(frame[stream] as string, frame.encoding === 'base64' ? 'base64' : 'utf8'))
}
