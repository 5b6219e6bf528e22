/**
 * What a command line is about to do, as far as its words tell: whether it destroys something, and whether its end is a
 * moment worth keeping. Wrappers (`sh -c`, `env`, `npx`, `sudo`, `time`) need no reading: what they start is a command of
 * its own.
 */
import { matchesCommand } from './command-pattern.ts'
import { type GitCall, parseGit } from './git-call.ts'

export interface Destructive {
  /** What it may destroy, as written; empty: what lies in its directory. */
  operands: string[]
  /** No snapshot of the target brings it back. */
  irreversible: boolean
}

/** The name of the program, without its directory; of an interpreter with a script, the script's. */
export function programOf([program = '', script]: readonly string[]): string {
  const name = baseName(program)
  if (!interpreters.test(name) || script === undefined || script.startsWith('-')) return name
  return baseName(script).replace(/\.(?:[cm]?js|py)$/, '')
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const interpreters = /^(?:node|nodejs|python[\d.]*|bun|deno)$/

/** The words behind the program, or behind the script that an interpreter runs. */
function argumentsOf(argv: readonly string[]): readonly string[] {
  return programOf(argv) === baseName(argv[0] ?? '') ? argv.slice(1) : argv.slice(2)
}

const hasFlag = (words: readonly string[], letters: string, ...long: string[]): boolean =>
  words.some(
    word =>
      long.some(name => word === name || word.startsWith(`${name}=`)) ||
      new RegExp(`^-[A-Za-z]*[${letters}]`).test(word),
  )
const operandsOf = (words: readonly string[]): string[] => words.filter(word => !word.startsWith('-'))

type Rule = (words: readonly string[]) => Partial<Destructive> | undefined

const packageManager: Rule = words =>
  /^(?:uninstall|remove|rm|un|unlink|r|prune|ci)$/.test(operandsOf(words)[0] ?? '') ? { operands: [] } : undefined
const systemPackages: Rule = words =>
  /^(?:remove|purge|autoremove|erase|uninstall)$/.test(operandsOf(words)[0] ?? '') ? { irreversible: true } : undefined
const containers: Rule = words => {
  const text = operandsOf(words).join(' ')
  return /^(?:volume (?:rm|remove|prune)|system prune|compose down)\b/.test(text) ? { irreversible: true } : undefined
}
const database: Rule = words =>
  /\b(?:drop|truncate|delete\s+from|flushall|flushdb|dropDatabase)\b/i.test(words.join(' '))
    ? { operands: operandsOf(words), irreversible: true }
    : undefined

const rules: Record<string, Rule> = {
  rm: words => (hasFlag(words, 'rR', '--recursive') ? { operands: operandsOf(words) } : undefined),
  find: words => {
    const commands = words.flatMap((word, i) =>
      /^-(?:exec|execdir|ok|okdir)$/.test(word) ? [baseName(words[i + 1] ?? '')] : [],
    )
    const destroys =
      words.includes('-delete') || commands.some(name => ['rm', 'shred', 'truncate', 'unlink'].includes(name))
    const start = words.findIndex(word => word.startsWith('-') || word === '(' || word === '!')
    return destroys ? { operands: words.slice(0, start) } : undefined
  },
  dd: words => {
    const target = words.find(word => word.startsWith('of='))?.slice(3)
    return target === undefined ? undefined : { operands: [target] }
  },
  truncate: words => ({ operands: operandsOf(words) }),
  shred: words => ({ operands: operandsOf(words) }),
  rsync: words =>
    words.some(word => word.startsWith('--delete') || word === '--del')
      ? { operands: operandsOf(words).slice(-1) }
      : undefined,
  mv: words => (hasFlag(words, 'n', '--no-clobber') ? undefined : { operands: moveTargets(words) }),
  sed: words => (hasFlag(words, 'i', '--in-place') ? { operands: operandsOf(words) } : undefined),
  npm: packageManager,
  yarn: packageManager,
  pnpm: packageManager,
  bun: packageManager,
  pip: words => (words[0] === 'uninstall' ? { operands: [] } : undefined),
  apt: systemPackages,
  'apt-get': systemPackages,
  dnf: systemPackages,
  docker: containers,
  podman: containers,
  psql: database,
  mysql: database,
  mariadb: database,
  sqlite3: database,
  mongosh: database,
  'redis-cli': database,
}

/** What a move would overwrite: the destination, or what has the same name in it. */
function moveTargets(words: readonly string[]): string[] {
  const operands = operandsOf(words)
  const destination = operands.at(-1)
  if (destination === undefined) return []
  return [destination, ...operands.slice(0, -1).map(source => `${destination}/${baseName(source)}`)]
}

const aliases: Record<string, string> = { pip3: 'pip' }

/** Names of programs that may destroy something; the words tell whether they do. */
export const suspects: readonly string[] = [
  ...Object.keys(rules),
  ...Object.keys(aliases),
  'git',
  'mkfs',
  ...mkfsNames(),
]

function mkfsNames(): string[] {
  return ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'vfat', 'f2fs'].map(kind => `mkfs.${kind}`)
}

/** `patterns`: further commands of the user's. `alias`: what git makes of a word that is no command of its. */
export function destructiveOf(
  argv: readonly string[],
  patterns: readonly string[] = [],
  alias: (call: GitCall) => string | undefined = () => undefined,
): Destructive | undefined {
  const program = programOf(argv)
  const words = argumentsOf(argv)
  const found = (result: Partial<Destructive> | undefined): Destructive | undefined =>
    result && { operands: [], irreversible: false, ...result }
  if (patterns.some(pattern => matchesCommand(pattern, argv))) return found({})
  if (program === 'git') return found(destructiveGit(parseGit(words, alias)))
  if (program.startsWith('mkfs')) return found({ operands: operandsOf(words).slice(-1), irreversible: true })
  const name = aliases[program] ?? program
  return Object.hasOwn(rules, name) ? found(rules[name]!(words)) : undefined
}

function destructiveGit({ verb, words, directory }: GitCall): Partial<Destructive> | undefined {
  const here = { operands: [directory] }
  switch (verb) {
    case 'reset':
      return words.some(word => /^--(?:hard|merge|keep)$/.test(word)) ? here : undefined
    case 'clean':
      return hasFlag(words, 'f', '--force') ? here : undefined
    case 'checkout': {
      if (hasFlag(words, 'f', '--force')) return here
      if (hasFlag(words, 'bB', '--orphan')) return undefined
      const [first, ...more] = operandsOf(words)
      if (words.includes('--') || more.length > 0) return here
      // A branch, or a path: only what exists counts.
      return first === undefined ? undefined : { operands: [directory === '.' ? first : `${directory}/${first}`] }
    }
    case 'switch':
      return hasFlag(words, 'f', '--force', '--discard-changes') ? here : undefined
    case 'restore':
      return hasFlag(words, 'S', '--staged') && !hasFlag(words, 'W', '--worktree') ? undefined : here
    case 'stash':
      return /^(?:list|show)$/.test(words[0] ?? '') ? undefined : here
    case 'rebase':
    case 'filter-branch':
    case 'filter-repo':
      return here
    case 'rm':
      return words.includes('--cached') ? undefined : here
    case 'merge':
    case 'cherry-pick':
    case 'revert':
    case 'am':
      return words.includes('--abort') ? here : undefined
    case 'push':
      return words.some(word => word.startsWith('--force') || word.startsWith('+') || word === '--delete') ||
        hasFlag(words, 'fd')
        ? { ...here, irreversible: true }
        : undefined
    default:
      return undefined
  }
}

export const isCommit = (argv: readonly string[], alias?: (call: GitCall) => string | undefined): boolean =>
  programOf(argv) === 'git' && parseGit(argumentsOf(argv), alias ?? (() => undefined)).verb === 'commit'

const builds = [
  'npm run build*',
  'npm run compile*',
  'yarn build*',
  'yarn compile*',
  'yarn run build*',
  'yarn run compile*',
  'pnpm build*',
  'pnpm run build*',
  'pnpm run compile*',
  'bun run build*',
  'bun run compile*',
  'bun build',
  'go build',
  'go install',
  'make $',
  'make all',
  'make build',
  'cargo build',
  'mvn package',
  'mvn compile',
  'mvn install',
  'gradle build',
  'gradle assemble',
  'gradlew build',
  'gradlew assemble',
  'tsc',
  'vite build',
  'cmake --build',
  'ninja',
]
const tests = [
  'npm test*',
  'npm t $',
  'npm run test*',
  'yarn test*',
  'yarn run test*',
  'pnpm test*',
  'pnpm run test*',
  'bun test*',
  'bun run test*',
  'vitest',
  'jest',
  'mocha',
  'ava',
  'pytest',
  'py.test',
  'tox',
  'nox',
  'go test',
  'cargo test',
  'cargo nextest',
  'mvn test',
  'mvn verify',
  'gradle test',
  'gradle check',
  'gradlew test',
  'gradlew check',
  'make test',
  'make check',
  'ctest',
  'rspec',
  'phpunit',
  'dotnet test',
  'playwright test',
  'cypress run',
  'node --test',
  'python -m pytest',
  'python3 -m pytest',
  'python -m unittest',
  'python3 -m unittest',
  'deno test',
]

/** Whether the end of this command is a moment worth a snapshot. The user's lists add to ours. */
export function milestoneOf(
  argv: readonly string[],
  { buildCommands, testCommands }: { buildCommands: readonly string[]; testCommands: readonly string[] },
): 'build' | 'test' | undefined {
  if ([...tests, ...testCommands].some(pattern => matchesCommand(pattern, argv))) return 'test'
  if ([...builds, ...buildCommands].some(pattern => matchesCommand(pattern, argv))) return 'build'
  return undefined
}
