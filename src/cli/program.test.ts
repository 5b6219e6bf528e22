import { type Command, CommanderError } from 'commander'
import { describe, expect, it, test } from 'vitest'
import { asSavepointError } from '../api/as-savepoint-error.ts'
import { SavepointError } from '../errors/errors.ts'
import { verbs } from './commands/index.ts'
import { expandHelp, verbIndex } from './help.ts'
import { refuseLaterVerb } from './later-verbs.ts'
import { buildProgram } from './program.ts'
import { reportError } from './report-error.ts'
import { commandNames, isHidden } from './usage.ts'

const promised =
  'run snapshot commit snapshots log show status doctor diff changes history coverage rollback checkout restore revert undo redo tag branches head delete compact prune gc verify purge operations runs export import completion demo'

it('has every verb of this version', () => {
  expect(commandNames(buildProgram())).toEqual(expect.arrayContaining(promised.split(' ')))
})

it.each(Object.keys(verbs))('%s alone is the same command as among all', name => {
  const alone = buildProgram(undefined, name).commands.find(command => command.name() === name)!
  const among = buildProgram().commands.find(command => command.name() === name)!
  expect(alone.helpInformation()).toBe(among.helpInformation())
})

it('an unknown verb, an alias and the verbs that look around get all of them', () => {
  const count = buildProgram().commands.length
  for (const verb of ['chekout', 'checkout', 'completion', '__complete', undefined])
    expect(buildProgram(undefined, verb).commands.length).toBe(count)
})

describe.each(buildProgram().commands.filter(command => !isHidden(command)))('$_name', (command: Command) => {
  it('explains itself with a summary that fits a line, a story and examples', () => {
    expect(command.summary().length).toBeGreaterThan(5)
    expect(command.summary().length).toBeLessThan(52)
    expect(command.description().length).toBeGreaterThan(command.summary().length)
    const help: string[] = []
    command.configureOutput({ writeOut: text => void help.push(text) }).outputHelp()
    expect(help.join('')).toMatch(/\nExamples:\n {2}savepoint /)
    expect(help.join('')).toContain('--json')
  })
})

/** Parses without running anything. */
function parse(...args: string[]): unknown {
  const program = buildProgram()
  for (const command of program.commands) command.action(() => {})
  try {
    program.parse(args, { from: 'user' })
    return undefined
  } catch (error) {
    return error
  }
}

test.each([
  [['rolback'], 'unknown command "rolback"', 'Did you mean rollback? Try: savepoint --help'],
  [['rollback', '--dryrun'], 'unknown option "--dryrun"', 'Did you mean --dry-run? Try: savepoint rollback --help'],
  [['--jsno', 'log'], 'unknown option "--jsno"', 'Did you mean --json? Try: savepoint --help'],
  [['revert'], 'missing required argument "paths"', 'Try: savepoint revert --help'],
  [['undo', 'x'], 'too many arguments for "undo". Expected 0 arguments but got 1', 'Try: savepoint undo --help'],
  [['log', '-n', '0'], expect.stringContaining('It must be a whole number from 1 up'), 'Try: savepoint log --help'],
  [['tag', '-t'], 'option "-t, --target <dir>" argument missing', 'Try: savepoint tag --help'],
])('%j is a usage error with a hint', (args, problem, hint) => {
  const error = parse(...args) as SavepointError
  expect(error).toBeInstanceOf(SavepointError)
  expect(error).toMatchObject({ code: 'usage', exitCode: 2, hint })
  expect(error.message.replace('Cannot read the command line: ', '')).toEqual(problem)
})

test.each([
  [['help'], ['--help']],
  [
    ['-t', 'x', 'help', '--json'],
    ['-t', 'x', '--json', '--help'],
  ],
  [
    ['help', '--json', 'run'],
    ['--json', 'run', '--help'],
  ],
  [['help', 'help'], ['--help']],
  [
    ['run', 'help'],
    ['run', 'help'],
  ],
])('%j is read as %j', (args, wanted) => expect(expandHelp(buildProgram(), args)).toEqual(wanted))

it('knows no help of what is no command', () => {
  const help = (name: string) => expandHelp(buildProgram(), ['help', name])
  expect(() => help('rolback')).toThrow('unknown command "rolback"')
  expect(() => help('tournament')).toThrow('not in this version yet')
})

it('gives everything after the first word of a run to the command', () => {
  for (const args of [
    ['run', '-q', 'ls', '--json', '--', '-x'],
    ['run', '-q', '--', 'ls', '--json', '--', '-x'],
  ]) {
    const program = buildProgram()
    let seen: unknown
    const run = program.commands.find(command => command.name() === 'run')!
    run.action(function (this: Command) {
      seen = [this.args, this.opts()]
    })
    program.parse(args, { from: 'user' })
    expect(seen).toEqual([['ls', '--json', '--', '-x'], expect.objectContaining({ quiet: true })])
    expect(seen).not.toEqual([expect.anything(), expect.objectContaining({ json: true })])
  }
})

it('ends help and version without an error code', () => {
  const program = buildProgram().configureOutput({ writeOut: () => {} })
  expect(() => program.parse(['--version'], { from: 'user' })).toThrow(CommanderError)
})

it('finds the verb behind options', () => {
  expect(verbIndex(['-t', 'x', '--home=y', '--json', 'log', 'trace'])).toBe(4)
  expect(verbIndex(['--home', 'y', 'trace'])).toBe(2)
  expect(verbIndex(['--json'])).toBe(-1)
})

test.each('env container repl fork tournament ui'.split(' '))('%s is known, but not yet there', verb => {
  expect(() => refuseLaterVerb(verb)).toThrow(expect.objectContaining({ code: 'unsupported', exitCode: 13 }))
  expect(commandNames(buildProgram())).not.toContain(verb)
})

it('renders errors as text with a hint and as one line of JSON', () => {
  const error = new SavepointError('snapshot.unknown', 'Cannot find snapshot "x"', {
    hint: 'Look\nharder',
    data: { a: 1 },
  })
  expect(reportError(error, false)).toEqual({
    text: 'savepoint: Cannot find snapshot "x"\n  hint: Look\n        harder\n',
    exitCode: 12,
  })
  expect(JSON.parse(reportError(error, true).text)).toEqual({
    error: { code: 'snapshot.unknown', message: 'Cannot find snapshot "x"', hint: 'Look\nharder', data: { a: 1 } },
  })
  expect(reportError(new SavepointError('failed', 'Cannot'), true).text.split('\n')).toHaveLength(2)
})

it('takes failed system calls for the state of the machine and everything else for our bug', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  expect(asSavepointError(full)).toMatchObject({ code: 'disk.full', exitCode: 1 })
  const locked = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 })
  expect(asSavepointError(locked)).toMatchObject({ code: 'busy', exitCode: 11, hint: expect.stringMatching(/Ctrl-Z/) })
  expect(asSavepointError(AbortSignal.abort().reason)).toMatchObject({ code: 'cancelled', exitCode: 130 })
  const bug = reportError(new TypeError('x is not a function'), false)
  expect(bug.exitCode).toBe(70)
  expect(bug.text).toMatch(/defect of Savepoint \d+\.\d+\.\d+.*TypeError: x is not a function[\s\S]*program\.test\.ts/)
  expect(reportError('a string', false).exitCode).toBe(70)
})
