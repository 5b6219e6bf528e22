/** Help as data, for --json, and `help COMMAND` as another way to write `COMMAND --help`. */
import type { Command, Option } from 'commander'
import { nearest } from '../model/suggest.ts'
import { refuseLaterVerb } from './later-verbs.ts'
import { commandNames, isHidden, wrongUsage } from './usage.ts'
import { version } from './version.ts'

/** Where the first word is that is neither an option nor the value of one; -1 when there is none. */
export function verbIndex(args: string[]): number {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (!arg.startsWith('-')) return i
    if (arg === '--') return i + 1 < args.length ? i + 1 : -1
    if (arg === '-t' || arg === '--target' || arg === '--adopt' || arg === '--home') i++
  }
  return -1
}

/** `help X` as `X --help`, options kept, because commander's own `help` takes an option for a command. */
export function expandHelp(program: Command, args: string[]): string[] {
  const at = verbIndex(args)
  if (args[at] !== 'help') return args
  const name = args.slice(at + 1).find(word => !word.startsWith('-'))
  const others = [...args.slice(0, at), ...args.slice(at + 1).filter(word => word !== name)]
  if (name === undefined || name === 'help') return [...others, '--help']
  refuseLaterVerb(name)
  const known = commandNames(program)
  if (!known.includes(name)) throw wrongUsage(program, `unknown command "${name}"`, nearest(name, known))
  return [...others, name, '--help']
}

export function helpJson(command: Command) {
  const own = {
    name: command.name(),
    aliases: command.aliases(),
    summary: command.summary(),
    description: command.description(),
    usage: [...(command.parent ? ['savepoint'] : []), command.name(), command.usage()].join(' '),
    arguments: command.registeredArguments.map(argument => ({
      name: argument.name(),
      description: argument.description,
      required: argument.required,
      variadic: argument.variadic,
    })),
    options: command.options.filter(({ hidden }) => !hidden).map(optionJson),
    examples: examplesOf(command),
  }
  if (command.parent) return own
  const commands = command.commands.filter(one => !isHidden(one))
  return {
    ...own,
    version,
    commands: commands.map(one => ({ name: one.name(), aliases: one.aliases(), summary: one.summary() })),
  }
}

const optionJson = ({ flags, description, defaultValue, negate }: Option) => ({
  flags,
  description,
  default: negate ? null : (defaultValue ?? null),
})

/** The lines "savepoint …" that `command --help` ends with. */
export function examplesOf(command: Command): string[] {
  const pieces: string[] = []
  // How commander asks for what `addHelpText` added; its types do not show that a command is an EventEmitter.
  const { emit } = command as Command & { emit(event: string, context: object): void }
  emit.call(command, 'afterHelp', { error: false, command, write: (piece: string) => void pieces.push(piece) })
  return pieces
    .join('')
    .split('\n')
    .flatMap(line => (line.startsWith('  savepoint ') ? [line.trim()] : []))
}
