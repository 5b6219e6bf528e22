/** Opens the ignore rules of a target: its ignore files, its repository, and what lies around it. */
import { type FactsOptions, type GitFactsCache, readGitFacts } from '../../files/git-facts.ts'
import { readOuter } from '../../files/git-outer.ts'
import { createRules, type ExcludeConfig } from '../../files/ignore-rules.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { RuleContext } from './pass.ts'
import { readSmallFile } from './read-small-file.ts'

/** With a larger one its rules do not apply, with a warning. */
const MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024

export interface RuleOptions {
  root: number
  rootPath: Buffer
  exclude: ExcludeConfig
  gitCache: GitFactsCache
  env: NodeJS.ProcessEnv
  answers?: FactsOptions['answers']
  onWarning: (text: string) => void
}

export async function openRules(options: RuleOptions): Promise<RuleContext> {
  const { root, rootPath, exclude, gitCache, env, answers, onWarning } = options
  const factsOptions = { cache: gitCache, env, answers }
  const exists = (name: Raw) => {
    try {
      return addon.statAt(root, name)
    } catch {
      return undefined
    }
  }
  const isFile = (name: Raw) => ((exists(name)?.mode ?? 0) & 0o170000) === 0o100000
  const gitFacts = async (path: Raw) => {
    return exclude.ignoreGitignore ? undefined : readGitFacts(rootPath, path, factsOptions)
  }
  const git = exists('.git') ? await gitFacts('') : undefined
  const outer = await readOuter(rootPath, factsOptions)
  const read = (path: Raw) => readSmallFile(root, path, MAX_IGNORE_FILE_BYTES)
  const present = { gitignore: isFile('.gitignore'), savepointignore: isFile('.savepointignore'), git }
  return { root: createRules({ read, config: exclude, present, outer, onWarning }), gitFacts }
}
