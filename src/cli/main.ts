/** The entry of the command line: silence about node:sqlite, and the words as they were given. Everything else is program.ts. */

const args = process.argv.slice(2)
void start()

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

/** The launcher passes --disable-warning; this covers a direct `node dist/cli.cjs`. */
function muteSqliteWarning(): void {
  const emitWarning = process.emitWarning.bind(process) as (...values: unknown[]) => void
  process.emitWarning = ((...values: unknown[]) => {
    if (!String(values[0]).startsWith('SQLite is an experimental feature')) emitWarning(...values)
  }) as typeof process.emitWarning
}
