/** The configuration that counts for a target: of the home, of the target as far as it is trusted, and what was asked for. */
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { SavepointError } from '../errors/errors.ts'
import type { Context } from './context.ts'
import type { OpenOptions } from './savepoint.ts'
import { acceptedConfig } from './trust.ts'

/** What it weakens is said to those who are about to capture: `run`, `snapshot` and `import`. With `withoutBrokenConfig`, a savepoint.yaml of the target that is wrong is said and does not count. */
export async function configFor(
  targetDir: Buffer | undefined,
  where: { homeDir: string; env: NodeJS.ProcessEnv; cwd: string },
  history: Pick<Context, 'db' | 'timelineDir'>,
  { withoutBrokenConfig, create, backend }: OpenOptions,
  notice: (text: string) => void,
): Promise<LoadedConfig> {
  const accept = acceptedConfig(history, notice)
  const loaded = await loadConfig({ ...where, targetDir, accept }).catch(async error => {
    if (!withoutBrokenConfig || !(error instanceof SavepointError) || error.code !== 'config.invalid') throw error
    const without = await loadConfig({ ...where, targetDir: undefined })
    notice(`going on without savepoint.yaml: ${error.message}`)
    return without
  })
  if (create && loaded.weakens.length > 0)
    notice(`savepoint.yaml of this directory weakens protection: ${loaded.weakens.join(', ')}`)
  const { snapshots } = loaded.config
  if (backend === undefined) return loaded
  return { ...loaded, config: { ...loaded.config, snapshots: { ...snapshots, backend } } }
}
