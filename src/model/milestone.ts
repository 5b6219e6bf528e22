/** Commands whose end is a moment worth keeping: builds and tests, as far as their words tell. */
import { type CommandPlace, matchesCommand } from './command-pattern.ts'
import { callOf } from './command-words.ts'

/** Of the project, of a part of it, and after a `clean`. */
const gradle = (...tasks: string[]): string[] =>
  ['gradle', 'gradlew'].flatMap(program =>
    tasks.flatMap(task => [`${program} ${task}`, `${program} *:${task}`, `${program} clean ${task}`]),
  )
const maven = (...phases: string[]): string[] =>
  ['mvn', 'mvnw'].flatMap(program => phases.flatMap(phase => [`${program} ${phase}`, `${program} clean ${phase}`]))
const make = (...goals: string[]): string[] =>
  ['make', 'gmake'].flatMap(program => goals.map(goal => `${program} ${goal}`))
/** In the project itself, in one of its workspaces, in all of them. */
const yarn = (...scripts: string[]): string[] =>
  ['yarn', 'yarn workspace *', 'yarn workspaces', 'yarn workspaces foreach'].flatMap(before =>
    scripts.flatMap(script => [`${before} ${script}`, `${before} run ${script}`]),
  )

const builds = [
  'npm run build*',
  'npm run compile*',
  'npm run-script build*',
  'npm run-script compile*',
  ...yarn('build*', 'compile*'),
  'pnpm build*',
  'pnpm run build*',
  'pnpm run compile*',
  'bun run build*',
  'bun run compile*',
  'bun build',
  'go build',
  'go install',
  ...make('$', 'all', 'build'),
  'cargo build',
  'cargo b',
  ...maven('package', 'compile', 'install'),
  ...gradle('build', 'assemble'),
  'tsc',
  'vite build',
  'cmake --build',
  'ninja',
]
const tests = [
  'npm test*',
  'npm t $',
  'npm run test*',
  'npm run-script test*',
  ...yarn('test*'),
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
  'cargo t',
  'cargo nextest',
  ...maven('test', 'verify'),
  ...gradle('test', 'check'),
  ...make('test', 'check'),
  'ctest',
  'rspec',
  'bundle exec rspec',
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

/** Options with which nothing is built or tested. */
const asking: Record<string, RegExp> = {
  make: /^(?:-[kswBdeirSt]*[nqvph][a-z]*|--(?:dry-run|just-print|recon|question|print-data-base))$/,
  tsc: /^(?:-[vh]|--(?:init|showConfig|all))$/,
}

asking.gmake = asking.make!

function onlyAsks(argv: readonly string[]): boolean {
  const own = asking[callOf(argv).program]
  return argv.some(word => /^--(?:version|help)$/.test(word) || own?.test(word))
}

/** Whether the end of this command is a moment worth a snapshot. The user's lists add to ours. */
export function milestoneOf(
  argv: readonly string[],
  { buildCommands, testCommands }: { buildCommands: readonly string[]; testCommands: readonly string[] },
  place: CommandPlace = {},
): 'build' | 'test' | undefined {
  const isOurs = !onlyAsks(argv)
  if ((isOurs && matchesCommand(tests, argv)) || matchesCommand(testCommands, argv, place)) return 'test'
  if ((isOurs && matchesCommand(builds, argv)) || matchesCommand(buildCommands, argv, place)) return 'build'
  return undefined
}
