/** What can stand at the cursor. Pure: names that need the timeline are asked for by kind and filled in by the command. */
import type { Argument, Command, Option } from 'commander'
import { isHidden } from './usage.ts'

export interface Candidate {
  value: string
  description?: string
}

export type NameKind = 'snapshots' | 'runs' | 'tags'

export interface CompletionPlan {
  /** Already fitting what was typed. */
  candidates: Candidate[]
  names: NameKind[]
  /** What the shell itself completes. */
  shell: 'files' | 'dirs' | 'command' | undefined
  /** What was typed at the cursor, unquoted. */
  typed: string
}

type Kind = { names?: NameKind[]; words?: string[]; shell?: CompletionPlan['shell'] }

/** By the name that an argument or the value of an option has in its definition. */
const kinds: Record<string, Kind> = {
  snapshot: { names: ['snapshots', 'tags'] },
  snapshots: { names: ['snapshots', 'tags'] },
  run: { names: ['runs'] },
  name: { names: ['tags'] },
  path: { shell: 'files' },
  paths: { shell: 'files' },
  file: { shell: 'files' },
  dir: { shell: 'dirs' },
  command: { shell: 'command' },
  shell: { words: ['bash', 'zsh', 'fish'] },
}

/** `words` follow the program's name; the last one is at the cursor and may be empty. */
export function planCompletion(program: Command, words: string[]): CompletionPlan {
  const joined = joinEquals(words)
  const typed = unquote(joined.at(-1) ?? '')
  const { command, operands, pending, afterDashes } = read(program, joined.slice(0, -1).map(unquote))
  if (pending) return plan(kindOf(pending), typed)
  const attached = /^(--[\w-]+)=(.*)$/s.exec(typed)
  if (attached && !afterDashes) {
    const option = command.options.find(({ long }) => long === attached[1])
    return plan(option ? kindOf(option) : {}, attached[2]!)
  }
  if (typed.startsWith('-') && !afterDashes) return { ...plan({}, typed), candidates: optionCandidates(command, typed) }
  if (command === program) return { ...plan({}, typed), candidates: commandCandidates(program, typed) }
  return plan(operandKind(command, operands.length, afterDashes), typed)
}

/** Only what starts with the typed text, the order kept. */
export const fitting = (candidates: Candidate[], typed: string): Candidate[] =>
  candidates.filter(({ value }) => value.startsWith(typed))

function plan(kind: Kind, typed: string): CompletionPlan {
  const candidates = fitting(
    (kind.words ?? []).map(value => ({ value })),
    typed,
  )
  return { candidates, names: kind.names ?? [], shell: kind.shell, typed }
}

interface Reading {
  command: Command
  operands: string[]
  /** An option that waits for its value. */
  pending: Option | undefined
  afterDashes: boolean
}

function read(program: Command, words: string[]): Reading {
  let command = program
  let pending: Option | undefined
  let afterDashes = false
  const operands: string[] = []
  for (const word of words) {
    const passes = command.name() === 'run' && operands.length > 0
    if (pending) pending = undefined
    else if (afterDashes || passes) operands.push(word)
    else if (word === '--') afterDashes = true
    else if (word.startsWith('-')) {
      const option = command.options.find(({ long, short }) => long === word || short === word)
      if (option?.required) pending = option
    } else if (command === program) {
      command = program.commands.find(one => one.name() === word || one.aliases().includes(word)) ?? program
      // `help` takes a command, and is no command that the program lists.
      if (word === 'help' && command === program) continue
      if (command === program) return { command: program.createCommand('unknown'), operands, pending, afterDashes }
    } else operands.push(word)
  }
  // After its first word everything is the command's, options too.
  if (command.name() === 'run' && operands.length > 0) afterDashes = true
  return { command, operands, pending, afterDashes }
}

function operandKind(command: Command, index: number, afterDashes: boolean): Kind {
  const named: Argument | undefined = command.registeredArguments[index] ?? command.registeredArguments.at(-1)
  const fits = named && (index < command.registeredArguments.length || named.variadic)
  if (!fits) return {}
  if (named.name() === 'command') return { shell: index === 0 ? 'command' : 'files' }
  if (named.name() !== 'words') return kinds[named.name()] ?? {}
  // Snapshots, then paths: `diff` and `rollback`.
  if (afterDashes) return { shell: 'files' }
  if (command.name() === 'rollback')
    return index === 0 ? { names: ['snapshots', 'tags', 'runs'] } : { names: ['snapshots', 'tags'] }
  return { names: index < 2 ? ['snapshots', 'tags'] : [], shell: 'files' }
}

const kindOf = (option: Option): Kind => kinds[/<(\w+)>/.exec(option.flags)?.[1] ?? ''] ?? {}

function optionCandidates(command: Command, typed: string): Candidate[] {
  const all = command.options.flatMap(({ long, short, description }) =>
    [long, typed.startsWith('--') ? undefined : short].flatMap(value => (value ? [{ value, description }] : [])),
  )
  return fitting([...all, { value: '--help', description: 'print help' }], typed)
}

const commandCandidates = (program: Command, typed: string): Candidate[] =>
  fitting(
    program.commands
      .filter(command => !isHidden(command))
      .flatMap(command =>
        [command.name(), ...command.aliases()].map(value => ({ value, description: command.summary() })),
      ),
    typed,
  )

/** bash splits "--to=x" into three words. */
function joinEquals(words: string[]): string[] {
  const joined: string[] = []
  for (const [i, word] of words.entries()) {
    const before = joined.at(-1)
    if (before?.startsWith('--') && (word === '=' || (before.endsWith('=') && words[i - 1] === '=')))
      joined[joined.length - 1] = before + word
    else joined.push(word)
  }
  return joined
}

/** Takes quotes and backslashes off a word as the shell would. */
const unquote = (word: string): string => word.replace(/^(["'])(.*?)\1?$/s, '$2').replace(/\\(.)/gs, '$1')
