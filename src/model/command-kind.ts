/**
 * What a command line is about to do, as far as its words tell: whether it destroys something. Wrappers (`sh -c`, `env`, `npx`, `sudo`, `time`) need no reading: what they start is a command of
 * its own.
 */
import { matchesCommand } from './command-pattern.ts'
import { baseName, callOf, plainWords } from './command-words.ts'
import { destructiveGit } from './destructive-git.ts'
import { harmlessForPackages, packageOptions, packageRules } from './destructive-packages.ts'
import { type GitCall, parseGit } from './git-call.ts'

export interface Destructive {
  /** What it may destroy, as written; empty: what lies in its directory. */
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
}

const hasFlag = (words: readonly string[], letters: string, ...long: string[]): boolean =>
  words.some(
    word =>
      long.some(name => word === name || word.startsWith(`${name}=`)) ||
      new RegExp(`^-[A-Za-z]*[${letters}]`).test(word),
  )
const operandsOf = (words: readonly string[]): string[] => words.filter(word => !word.startsWith('-'))

export type Rule = (words: readonly string[], program: string) => Partial<Destructive> | undefined

const containers: Rule = (words, program) => {
  const text = [...(program === 'docker-compose' ? ['compose'] : []), ...plainWords('docker', words)].join(' ')
  return /^(?:volume (?:rm|remove|prune)|system prune|compose down)\b/.test(text) ? { irreversible: true } : undefined
}
/** What it names is no path: the files where it is called are guarded, which may be all that there is of the data. */
const database: Rule = words =>
  /\b(?:drop|truncate|delete\s+from|flushall|flushdb|dropDatabase)\b/i.test(words.join(' '))
    ? { operands: [], irreversible: true }
    : undefined

const rules: Record<string, Rule> = {
  rm: words => (hasFlag(words, 'rR', '--recursive') ? { operands: operandsOf(words) } : undefined),
  find: words => {
    const commands = words.flatMap((word, i) =>
      /^-(?:exec|execdir|ok|okdir)$/.test(word) ? [baseName(words[i + 1] ?? '')] : [],
    )
    const destroys =
      words.includes('-delete') || commands.some(name => ['rm', 'shred', 'truncate', 'unlink'].includes(name))
    const first = findStart(words)
    const count = words.slice(first).findIndex(word => word.startsWith('-') || word === '(' || word === '!')
    return destroys
      ? { operands: words.slice(first, first + count), follows: /^-[HL]$/.test(words[0] ?? '') }
      : undefined
  },
  dd: words => {
    const target = words.find(word => word.startsWith('of='))?.slice(3)
    return target === undefined ? undefined : { operands: [target], follows: true }
  },
  truncate: words => ({ operands: operandsOf(words), follows: true }),
  shred: words => ({ operands: operandsOf(words), follows: true }),
  rsync: words =>
    words.some(word => word.startsWith('--delete') || word === '--del')
      ? { operands: operandsOf(words).slice(-1), follows: true }
      : undefined,
  mv: words => (hasFlag(words, 'n', '--no-clobber') ? undefined : moveTargets(words)),
  sed: words => (hasFlag(words, 'i', '--in-place') ? { operands: operandsOf(words) } : undefined),
  ...packageRules,
  docker: containers,
  podman: containers,
  'docker-compose': containers,
  psql: database,
  mysql: database,
  mysqladmin: database,
  mariadb: database,
  // Its database is a file, which a snapshot brings back if it lies in the target.
  sqlite3: words => {
    const destroyed = database(words, 'sqlite3')
    return destroyed && { operands: operandsOf(words), irreversible: false }
  },
  mongosh: database,
  mongo: database,
  'redis-cli': database,
  dropdb: () => ({ operands: [], irreversible: true }),
}

/** What a move would overwrite: the destination, unless it is moved into, or what has the same name in it. */
function moveTargets(words: readonly string[]): Partial<Destructive> | undefined {
  const at = words.findIndex(word => /^-[A-Za-z]*t$|^--target-directory$/.test(word))
  const joined = words.find(word => word.startsWith('--target-directory='))
  const named = joined?.slice(joined.indexOf('=') + 1) ?? (at < 0 ? undefined : words[at + 1])
  const operands = operandsOf(words.filter((_, i) => at < 0 || i !== at + 1))
  const destination = named ?? operands.pop()
  if (destination === undefined) return undefined
  const inside = operands.map(source => `${destination}/${baseName(source.replace(/\/+$/, ''))}`)
  const isOver = named === undefined
  return {
    operands: [...(isOver ? [destination] : []), ...inside],
    unlessDirectory: isOver ? [destination] : [],
    follows: true,
  }
}

/** Where the places to start from begin: behind `-L`, `-H`, `-P`, `-O3`, `-D stat`. */
function findStart(words: readonly string[]): number {
  let at = 0
  while (/^-(?:[HLP]|O\d*|D)$/.test(words[at] ?? '')) at += words[at] === '-D' ? 2 : 1
  return at
}

const aliases: Record<string, string> = { pip3: 'pip' }

const containerVerbs = 'ps images run exec build logs inspect pull push version info'
const gitVerbs =
  'add annotate apply blame branch cat-file check-ignore clone commit config describe diff diff-files diff-index diff-tree fetch for-each-ref fsck gc grep hash-object index-pack init log ls-files ls-remote ls-tree maintenance merge-base name-rev pack-objects pull reflog remote rev-list rev-parse shortlog show show-ref status symbolic-ref tag unpack-objects update-index update-ref upload-pack version write-tree'

/**
 * What the helper itself can tell, so that a command that destroys nothing need not wait for us (native/helper/holds.h): letters
 * of the options that matter, or first words that do no harm. No alias of git's can have the name of a command of its.
 */
const options: Record<string, string> = {
  ...{ rm: 'rR', find: 'dxk', rsync: '', sed: 'i', python: 'm', python3: 'm' },
  ...packageOptions,
}
const harmless: Record<string, string> = {
  git: gitVerbs,
  ...harmlessForPackages,
  ...{ docker: containerVerbs, podman: containerVerbs },
}

function suspectOf(name: string): string {
  if (options[name] !== undefined) return `${name}=${options[name]}`
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

export interface CommandContext {
  /** Further commands of the user's. */
  patterns?: readonly string[]
  /** What git makes of a word that is no command of its. */
  alias?: (call: GitCall) => string | undefined
  /** Where its variables say that git's directories are. */
  gitEnv?: { workTree: string | undefined; gitDirectory: string | undefined }
  /** The file that is executed: its name counts as much as the one that it is called by. */
  file?: string
}

export function destructiveOf(argv: readonly string[], context: CommandContext = {}): Destructive | undefined {
  const { patterns = [], file } = context
  const calls = [callOf(argv), ...(file === undefined ? [] : [callOf([file, ...argv.slice(1)])])]
  const isNamed = matchesCommand(patterns, argv)
  const result = isNamed ? {} : calls.map(call => destroys(call, context)).find(each => each !== undefined)
  return (
    result && {
      operands: [],
      unlessDirectory: [],
      follows: false,
      wholeRepository: false,
      underWay: undefined,
      irreversible: false,
      ...result,
    }
  )
}

function destroys(
  { program, words }: ReturnType<typeof callOf>,
  { alias = () => undefined, gitEnv }: CommandContext,
): Partial<Destructive> | undefined {
  if (program === 'git') return destructiveGit(parseGit(words, alias, gitEnv))
  if (program.startsWith('mkfs')) return { operands: operandsOf(words).slice(-1), irreversible: true }
  const name = aliases[program] ?? program
  return Object.hasOwn(rules, name) ? rules[name]!(words, name) : undefined
}

export function isCommit(argv: readonly string[], alias?: (call: GitCall) => string | undefined): boolean {
  const { program, words } = callOf(argv)
  return program === 'git' && parseGit(words, alias ?? (() => undefined)).verb === 'commit'
}
