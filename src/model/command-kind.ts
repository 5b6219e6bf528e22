/**
 * What a command line is about to do, as far as its words tell: whether it destroys something. Wrappers (`sh -c`, `env`, `npx`, `sudo`, `time`) need no reading: what they start is a command of
 * its own.
 */
import { type CommandPlace, matchesCommand } from './command-pattern.ts'
import { ANYWHERE, callOf } from './command-words.ts'
import { fileOptions, fileRules, fileWords, operandsOf } from './destructive-files.ts'
import { filesystemRules, harmlessForFilesystems } from './destructive-filesystems.ts'
import { destructiveGit, harmlessGit } from './destructive-git.ts'
import { harmlessOutside, outsideRules } from './destructive-outside.ts'
import { harmlessForPackages, packageOptions, packageRules } from './destructive-packages.ts'
import { type GitCall, parseGit } from './git-call.ts'
import { onlyShowsCommit } from './git-commit.ts'
import { type KeptAnyway, keptAnyway, keptAnywayOfGit } from './kept-anyway.ts'

export interface Destructive {
  /** What it may destroy, as written; empty: what lies in its directory. ANYWHERE, where its words do not say. */
  operands: string[]
  /** Of these, directories do not count: they would not be overwritten, but moved into. */
  unlessDirectory: string[]
  /** An operand that is a symbolic link means what it leads to. */
  follows: boolean
  /** What lies in the repository around an operand is in danger, not only what lies below it. */
  wholeRepository: boolean
  /** Only if one of these is in the git directory: otherwise there is nothing to abort. */
  underWay: string[] | undefined
  /** No snapshot of the target brings it back. */
  irreversible: boolean
  /** Only if its standard input tells it something. */
  onlyFed: boolean
  keptAnyway: KeptAnyway
}

export type Rule = (words: readonly string[], program: string) => Partial<Destructive> | undefined

const rules: Record<string, Rule> = { ...fileRules, ...filesystemRules, ...packageRules, ...outsideRules }
const aliases: Record<string, string> = { pip3: 'pip' }

/**
 * What the helper itself can tell, so that a command that destroys nothing need not wait for us (native/helper/holds.h): letters
 * of the options that matter, first words that do no harm, or words without which it does none.
 */
const options: Record<string, string> = { ...fileOptions, python: 'm', python3: 'm', ...packageOptions }
const harmless: Record<string, string> = {
  git: harmlessGit,
  ...harmlessForFilesystems,
  ...harmlessForPackages,
  ...harmlessOutside,
}

function suspectOf(name: string): string {
  if (options[name] !== undefined) return `${name}=${options[name]}`
  if (fileWords[name] !== undefined) return `${name}?${fileWords[name].join('/')}`
  return harmless[name] === undefined ? name : [name, ...harmless[name].split(' ')].join('/')
}

/** Programs that may destroy something, and when they need not be held; beyond that the words tell whether they do. */
export const suspects: readonly string[] = [
  ...Object.keys(rules),
  ...Object.keys(aliases),
  'git',
  // `python3 -m pip`, `busybox rm`.
  'python',
  'python3',
  'busybox',
  'toybox',
  'mkfs',
  ...mkfsNames(),
].map(suspectOf)

function mkfsNames(): string[] {
  return ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'vfat', 'f2fs'].map(kind => `mkfs.${kind}`)
}

/** Of the file that is executed the name counts as much as the one that it is called by. */
export interface CommandContext extends CommandPlace {
  /** Further commands of the user's. */
  patterns?: readonly string[]
  /** What git makes of a word that is no command of its. */
  alias?: (call: GitCall) => string | undefined
  /** Where its variables say that git's directories are. */
  gitEnv?: { workTree: string | undefined; gitDirectory: string | undefined }
  /** Whether something is at its standard input that is no terminal. */
  isFed?: () => boolean
}

export function destructiveOf(argv: readonly string[], context: CommandContext = {}): Destructive | undefined {
  const { patterns = [], file, isFed = () => false } = context
  const calls = [callOf(argv), ...(file === undefined ? [] : [callOf([file, ...argv.slice(1)])])]
  const isNamed = matchesCommand(patterns, argv, context)
  const result = isNamed
    ? { operands: ANYWHERE }
    : calls.map(call => destroys(call, context)).find(each => each !== undefined)
  if (result?.onlyFed && !isFed()) return undefined
  return (
    result && {
      operands: [],
      unlessDirectory: [],
      follows: false,
      wholeRepository: false,
      underWay: undefined,
      irreversible: false,
      onlyFed: false,
      // Of a command of the user's nobody knows how it does it.
      keptAnyway: 'before',
      ...result,
    }
  )
}

function destroys(
  { program, words }: ReturnType<typeof callOf>,
  { alias = () => undefined, gitEnv }: CommandContext,
): Partial<Destructive> | undefined {
  if (program === 'git') {
    const call = parseGit(words, alias, gitEnv)
    const result = destructiveGit(call)
    return result && { ...result, keptAnyway: keptAnywayOfGit(call.verb, call.words) }
  }
  if (program.startsWith('mkfs')) return { operands: operandsOf(words).slice(-1), irreversible: true }
  const name = aliases[program] ?? program
  const result = Object.hasOwn(rules, name) ? rules[name]!(words, name) : undefined
  return result && { ...result, keptAnyway: keptAnyway(name, words) }
}

/** Undefined when it is none, or only says what it would be. An alias for it is no matter: git starts what that means as a command of its own. */
export function commitOf(argv: readonly string[], gitEnv?: CommandContext['gitEnv']): GitCall | undefined {
  const { program, words } = callOf(argv)
  const call = program === 'git' ? parseGit(words, () => undefined, gitEnv) : undefined
  return call?.verb === 'commit' && !onlyShowsCommit(call.words) ? call : undefined
}
