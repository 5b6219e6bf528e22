/** Opens the ignore rules of a target: its ignore files, its repository, and what lies around it. */
import { type FactsOptions, type GitFactsCache, readGitFacts } from '../../files/git-facts.ts'
import { readOuter } from '../../files/git-outer.ts'
import { createRules, type ExcludeConfig } from '../../files/ignore-rules.ts'
import { factsOfThen, type OutsideRules, outerOfThen } from '../../files/outside-rules.ts'
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
  /** What lay outside when the state was taken that is read now. */
  outside?: OutsideRules | undefined
}

export async function openRules(options: RuleOptions): Promise<RuleContext> {
  const { root, rootPath, exclude, gitCache, env, answers, onWarning, outside } = options
  const factsOptions = { cache: gitCache, env, answers }
  const view = options.view ?? diskView(root)
  const gitFacts = async (path: Raw) => {
    if (exclude.ignoreGitignore) return undefined
    const today = await readGitFacts(rootPath, path, factsOptions)
    return view.facts(path, outside ? factsOfThen(path, today, outside) : today)
  }
  const git = view.exists('.git') ? await gitFacts('') : undefined
  const today = await readOuter(options.outerPath ?? rootPath, factsOptions)
  const outer = outside ? outerOfThen(today, outside) : today
  const present = { gitignore: view.isFile('.gitignore'), savepointignore: view.isFile('.savepointignore'), git }
  return { root: createRules({ read: view.read, config: exclude, present, outer, onWarning }), gitFacts }
}
