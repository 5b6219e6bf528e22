/** Builds the program from its verbs, runs one command line, and turns whatever happened into output and exit code. */
import { Command, CommanderError } from 'commander'
import { signalNumbers } from './cancellation.ts'
import { registerVerbs } from './commands/index.ts'
import { addCommonOptions, groups, outcome } from './define.ts'
import { expandHelp, helpJson, verbIndex } from './help.ts'
import { refuseLaterVerb } from './later-verbs.ts'
import { asSavepointError, reportError } from './report-error.ts'
import { usageError } from './usage.ts'
import { version } from './version.ts'

/** Commander has answered by itself: with the help of `command`, or with the version. */
class Answered extends CommanderError {
  readonly command: Command

  constructor(command: Command, { exitCode, code, message }: CommanderError) {
    super(exitCode, code, message)
    this.command = command
  }
}

/** `writeOut` gets help and version. `only`: a verb that is all that will be asked for. */
export function buildProgram(writeOut: (text: string) => void = () => {}, only?: string): Command {
  const program = new Command('savepoint')
    .description('Makes everything an AI agent does to your files visible and reversible.')
    .usage('[options] <command> …')
    .version(`savepoint ${version}`, '-V, --version', 'print the version')
    .addHelpCommand(
      new Command('help').argument('[command]').helpGroup(groups.more).summary('print the help of a command'),
    )
    .enablePositionalOptions()
    .showSuggestionAfterError(false)
    .configureHelp({
      commandUsage: command => [...(command.parent ? ['savepoint'] : []), command.name(), command.usage()].join(' '),
      subcommandTerm: command => [command.name(), ...command.aliases()].join(', '),
      // Of `diff` and `rollback`, whose usage says it better.
      visibleArguments: command => command.registeredArguments.filter(argument => argument.name() !== 'words'),
    })
    // Everything that goes wrong is thrown and rendered in one place; help and version are the only output.
    .configureOutput({ writeErr: () => {}, writeOut })
    .addHelpText('after', firstSteps)
  registerVerbs(program, only)
  for (const command of [program, ...program.commands]) {
    addCommonOptions(command)
    command.exitOverride(error => {
      const isAnswer = error.exitCode === 0 || error.code === 'commander.help'
      throw isAnswer ? new Answered(command, error) : usageError(command, error)
    })
  }
  return program
}

const firstSteps = `
First steps:
  savepoint run -- claude    protect this directory while an agent works in it
  savepoint undo             take back what the last run did
  savepoint demo             see it happen in a minute

\`savepoint COMMAND --help\` shows all options of a command, with examples.`

export async function main(args: string[]): Promise<void> {
  // A reader that went away is no error; what cannot be written is found where it is written.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const fail = (error: unknown) => finish(report(error, args))
  process.once('uncaughtException', fail).once('unhandledRejection', fail)
  await finish(await runProgram(args).catch((error: unknown) => report(error, args)))
}

async function runProgram(args: string[]): Promise<number> {
  const said: string[] = []
  const verb = args[verbIndex(args)]
  const program = buildProgram(text => void said.push(text), verb)
  try {
    refuseLaterVerb(verb)
    await program.parseAsync(expandHelp(program, args), { from: 'user' })
    return outcome.exitCode
  } catch (error) {
    if (!(error instanceof Answered)) throw error
    // Without a verb there is nothing wrong yet: help says what to write.
    if (error.exitCode !== 0) program.outputHelp()
    const { command, code } = error
    const asData = () => (code === 'commander.version' ? { name: 'savepoint', version } : helpJson(command))
    process.stdout.write(wantsJson(args) ? `${JSON.stringify(asData(), null, 2)}\n` : said.join(''))
    return 0
  }
}

/** Also where the command line could not be read; what follows -- is not ours. */
const wantsJson = (args: string[]): boolean => {
  const dashes = args.indexOf('--')
  return outcome.json || (dashes < 0 ? args : args.slice(0, dashes)).includes('--json')
}

function report(thrown: unknown, args: string[]): number {
  const { text, exitCode } = reportError(thrown, wantsJson(args))
  process.stderr.write(text)
  const signal = asSavepointError(thrown).data?.signal as NodeJS.Signals | undefined
  return signal ? 128 + (signalNumbers[signal] ?? 2) : exitCode
}

/** Ends the process even when a worker or a handle is still open, after what was written has left. */
async function finish(exitCode: number): Promise<void> {
  await new Promise<void>(resolve => void process.stdout.write('', () => resolve()))
  // A child that died of Ctrl-C: dying the same way tells the shell to stop its script, too.
  if (outcome.dieBy) {
    process.removeAllListeners(outcome.dieBy)
    process.kill(process.pid, outcome.dieBy)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  process.exit(exitCode)
}
