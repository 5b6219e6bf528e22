/** How another program starts us. */
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { homeOfAccount } from '../../index.ts'

/** The word that means this very program: its name where PATH leads to it, else its path. */
function programWord(env: NodeJS.ProcessEnv, script: string = process.argv[1]!): string {
  const launcher = launcherAbove(realpathSync(script))
  const named = (env.PATH ?? '')
    .split(delimiter)
    .map(directory => join(directory, 'savepoint'))
    .find(file => existsSync(file))
  const isSame = named !== undefined && realpathSync(named) === launcher
  return isSame ? 'savepoint' : launcher
}

/** dist/cli.cjs and src/cli/main.ts lie below it. */
function launcherAbove(script: string): string {
  for (let directory = dirname(script); directory !== dirname(directory); directory = dirname(directory)) {
    const launcher = join(directory, 'savepoint')
    if (existsSync(join(directory, 'package.json')) && existsSync(launcher)) return launcher
  }
  return script
}

/** The store is named where it is not the usual one: agents do not hand their environment down. */
export function commandFor(verb: string[], env: NodeJS.ProcessEnv, home: string | undefined): string[] {
  const usual = join(env.HOME || homeOfAccount() || '/', '.savepoint')
  const store = resolve(home ?? (env.SAVEPOINT_HOME || usual))
  return [programWord(env), ...verb, ...(store === resolve(usual) ? [] : ['--home', store])]
}
