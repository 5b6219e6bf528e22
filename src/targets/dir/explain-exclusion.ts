/** Which rule excludes a path, whether or not it exists: `coverage` must name the line that a person can edit. */
import type { DirRules, ExcludeConfig } from '../../files/ignore-rules.ts'
import { joinRaw, nameOf, parentOf, type Raw } from '../../model/raw-path.ts'
import { statOrNothing } from './look-at.ts'
import type { RuleContext } from './pass.ts'
import { openRules } from './rule-context.ts'
import { diskView, type RuleView } from './rule-view.ts'
import { S_IFDIR, S_IFMT } from './walk-record.ts'

export interface ExclusionRule {
  source: string
  pattern: string
  line?: number
}

interface Options {
  root: number
  rootPath: Buffer
  exclude: ExcludeConfig
  env: NodeJS.ProcessEnv
  view?: RuleView
}

export class Exclusions {
  private readonly view: RuleView
  private readonly context: RuleContext
  /** By directory: the rules in it, or the one that excludes it. */
  private readonly known = new Map<Raw, DirRules | { excludedBy: ExclusionRule }>()

  constructor(root: number, context: RuleContext, view = diskView(root)) {
    this.view = view
    this.context = context
    this.known.set('', context.root)
  }

  static async open(options: Options): Promise<Exclusions> {
    const memory = new Map<string, string[]>()
    const gitCache = {
      get: (key: string) => memory.get(key),
      set: (key: string, value: string[]) => void memory.set(key, value),
    }
    return new Exclusions(options.root, await openRules({ ...options, gitCache, onWarning: () => {} }), options.view)
  }

  /** The rule; undefined when none excludes it. */
  async of(path: Raw, file: { isDirectory: boolean; size: number }): Promise<ExclusionRule | undefined> {
    const rules = await this.rulesIn(parentOf(path))
    if ('excludedBy' in rules) return rules.excludedBy
    const verdict = rules.verdict(nameOf(path), file.isDirectory, file.size)
    return verdict.kind === 'exclude' ? verdict.rule : undefined
  }

  private async rulesIn(directory: Raw): Promise<DirRules | { excludedBy: ExclusionRule }> {
    const known = this.known.get(directory)
    if (known) return known
    const above = await this.rulesIn(parentOf(directory))
    const rules = 'excludedBy' in above ? above : await this.enter(above, directory)
    this.known.set(directory, rules)
    return rules
  }

  private async enter(above: DirRules, directory: Raw): Promise<DirRules | { excludedBy: ExclusionRule }> {
    const name = nameOf(directory)
    const verdict = above.verdict(name, true, 0)
    if (verdict.kind === 'exclude') return { excludedBy: verdict.rule }
    const has = (file: Raw) => this.view.isFile(joinRaw(directory, file))
    const git = this.view.exists(joinRaw(directory, '.git')) ? await this.context.gitFacts(directory) : undefined
    return above.enter(name, { gitignore: has('.gitignore'), savepointignore: has('.savepointignore'), git })
  }
}

export async function explainExclusion(options: Options, path: Raw): Promise<ExclusionRule | undefined> {
  const stat = statOrNothing(options.root, path)
  const isDirectory = ((stat?.mode ?? 0) & S_IFMT) === S_IFDIR
  return (await Exclusions.open(options)).of(path, { isDirectory, size: stat?.size ?? 0 })
}
