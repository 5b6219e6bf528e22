/** Long results on a terminal go through a pager, as git's do. */
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createOutput, type Output } from './output.ts'

/** The command line for `sh`, or undefined for none: $SAVEPOINT_PAGER, $PAGER, less. */
export function choosePager(env: NodeJS.ProcessEnv): string | undefined {
  const chosen = env.SAVEPOINT_PAGER ?? env.PAGER
  if (chosen !== undefined) {
    const program = chosen.trim().split(/\s+/)[0]!
    return program === '' || program === 'cat' || !isInstalled(program, env) ? undefined : chosen
  }
  return isInstalled('less', env) ? 'less -FRX' : undefined
}

function isInstalled(program: string, env: NodeJS.ProcessEnv): boolean {
  // Anything but a plain word is for the shell to understand.
  if (!/^[\w./+-]+$/.test(program)) return true
  const places = program.includes('/') ? [program] : (env.PATH ?? '').split(delimiter).map(dir => join(dir, program))
  return places.some(place => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * Runs `body` with the pager's input as its output and settles when the pager was left. Ctrl-C is the pager's while it
 * is open. What `body` throws is thrown on after that.
 */
export async function throughPager(
  command: string,
  env: NodeJS.ProcessEnv,
  body: (output: Output) => Promise<void> | void,
): Promise<void> {
  const pager = spawn('sh', ['-c', command], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...env, LESS: env.LESS ?? 'FRX', LV: env.LV ?? '-c' },
  })
  const left = new Promise<void>(resolve => pager.once('close', () => resolve()).once('error', () => resolve()))
  const ignore = () => {}
  process.on('SIGINT', ignore)
  try {
    await body(createOutput(pager.stdin))
  } finally {
    pager.stdin.end()
    await left
    process.off('SIGINT', ignore)
  }
}
