/**
 * The entry of the command line. It owns what must happen before anything is loaded: the answer to --version, the
 * compile cache, silence about node:sqlite, and the last resort for what nobody caught. Everything else is program.ts.
 */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { version } from './version.ts'

const args = process.argv.slice(2)
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`savepoint ${version}\n`)
} else {
  await start()
}

async function start(): Promise<void> {
  muteSqliteWarning()
  // Beside the program and not in a shared /tmp: whoever can write there could change the program itself.
  if (import.meta.url.endsWith('.js')) enableCompileCache(fileURLToPath(new URL('../build/compile-cache', import.meta.url)))
  const { main } = await import('./program.ts')
  await main(args)
}

/** The launcher passes --disable-warning; this covers a direct `node dist/cli.js`. */
function muteSqliteWarning(): void {
  const emitWarning = process.emitWarning.bind(process) as (...values: unknown[]) => void
  process.emitWarning = ((...values: unknown[]) => {
    if (!String(values[0]).startsWith('SQLite is an experimental feature')) emitWarning(...values)
  }) as typeof process.emitWarning
}
