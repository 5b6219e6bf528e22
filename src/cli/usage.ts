/** Wrong command lines: commander's findings as our errors, with what was probably meant. */
import type { Command, CommanderError } from 'commander'
import { SavepointError } from '../errors/errors.ts'
import { nearest } from '../model/suggest.ts'

export function usageError(command: Command, error: CommanderError): SavepointError {
  const message = error.message
    .replace(/^error: /, '')
    .split('\n')[0]!
    .replace(/\.$/, '')
  const typed = /'([^']*)'/.exec(message)?.[1] ?? ''
  const suggestion =
    error.code === 'commander.unknownOption'
      ? nearest(typed.replace(/=.*/s, ''), optionNames(command))
      : error.code === 'commander.unknownCommand'
        ? nearest(typed, commandNames(command))
        : undefined
  return wrongUsage(command, message.replaceAll("'", '"'), suggestion)
}

/** A usage error found by a command itself. `problem` completes "Cannot read the command line: …". */
export function wrongUsage(command: Command | string, problem: string, suggestion?: string): SavepointError {
  const name = typeof command === 'string' ? `savepoint ${command}` : nameOf(command)
  const meant = suggestion ? `Did you mean ${suggestion}? ` : ''
  return new SavepointError('usage', `Cannot read the command line: ${problem}`, {
    hint: `${meant}Try: ${name} --help`,
    data: suggestion ? { suggestion } : undefined,
  })
}

const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()

const optionNames = (command: Command) =>
  command.options.flatMap(({ long, short }) => [long, short].filter(name => !!name) as string[])

export const commandNames = (program: Command): string[] =>
  program.commands.flatMap(command => (isHidden(command) ? [] : [command.name(), ...command.aliases()]))

/** Hidden commands are for scripts; commander has no public question for it. */
export const isHidden = (command: Command): boolean => (command as Command & { _hidden?: boolean })._hidden === true
