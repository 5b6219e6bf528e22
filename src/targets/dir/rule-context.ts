/** Opens the ignore rules of a target: its ignore files, its repository, and what lies around it. */
import { type FactsOptions, type GitFactsCache, readGitFacts } from '../../files/git-facts.ts'
import { readOuter } from '../../files/git-outer.ts'
import { createRules, type ExcludeConfig } from '../../files/ignore-rules.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { RuleContext } from './pass.ts'
import { diskView, type RuleView } from './rule-view.ts'

export interface RuleOptions {
  root: number
  rootPath: Buffer
  /** Around which repositories are looked for, when that is elsewhere: a state that is kept apart from its target. */
  outerPath?: Buffer
  exclude: ExcludeConfig
  gitCache: GitFactsCache
  env: NodeJS.ProcessEnv
  answers?: FactsOptions['answers']
  onWarning: (text: string) => void
  /** Where they are looked for; as a rule on the disk. */
  view?: RuleView
}

export async function openRules(options: RuleOptions): Promise<RuleContext> {
  const { root, rootPath, exclude, gitCache, env, answers, onWarning } = options
  const factsOptions = { cache: gitCache, env, answers }
  const view = options.view ?? diskView(root)
  const gitFacts = async (path: Raw) => {
    return exclude.ignoreGitignore ? undefined : view.facts(path, await readGitFacts(rootPath, path, factsOptions))
  }
  const git = view.exists('.git') ? await gitFacts('') : undefined
  const outer = await readOuter(options.outerPath ?? rootPath, factsOptions)
  const present = { gitignore: view.isFile('.gitignore'), savepointignore: view.isFile('.savepointignore'), git }
  return { root: createRules({ read: view.read, config: exclude, present, outer, onWarning }), gitFacts }
}
