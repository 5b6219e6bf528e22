/**
 * The entry of the command line. It owns what must happen before anything is loaded: the answer to --version
 * and silence about node:sqlite. Everything else is program.ts.
 */
import { version } from './version.ts'

const args = process.argv.slice(2)
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`savepoint ${version}\n`)
} else {
  await start()
}

async function start(): Promise<void> {
  muteSqliteWarning()
  const { main } = await import('./program.ts')
  await main(args.some(arg => arg.includes('\ufffd')) ? await exact(args) : args)
}

/** U+FFFD is what node makes of bytes that are not UTF-8; only then is the addon needed this early. */
async function exact(lossy: string[]): Promise<string[]> {
  const { exactArguments } = await import('../model/exact-arguments.ts')
  return exactArguments(lossy)
}

/** The launcher passes --disable-warning; this covers a direct `node dist/cli.js`. */
function muteSqliteWarning(): void {
  const emitWarning = process.emitWarning.bind(process) as (...values: unknown[]) => void
  process.emitWarning = ((...values: unknown[]) => {
    if (!String(values[0]).startsWith('SQLite is an experimental feature')) emitWarning(...values)
  }) as typeof process.emitWarning
}
