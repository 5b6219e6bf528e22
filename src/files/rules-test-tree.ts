/** For tests: rules of a tree that is only an object, and what a walk with them sees. */
import { joinRaw, type Raw } from '../model/raw-path.ts'
import type { GitFacts, OuterRules } from './git-facts.ts'
import { createRules, type DirRules, type ExcludeConfig, type Present } from './ignore-rules.ts'

export interface Tree {
  [name: Raw]: string | Tree
}
export interface Setting {
  config?: Partial<ExcludeConfig>
  outer?: Partial<OuterRules>
  /** By directory: what git says about the repository there. */
  git?: Record<Raw, Partial<GitFacts>>
  read?: (path: Raw) => Buffer
  warnings?: string[]
  sizeBytes?: number
}

export const file = (source: Raw, content: string, prefix = '') => ({
  source,
  content: Buffer.from(content, 'latin1'),
  prefix,
})

export function factsAt(repoRoot: Raw, partial: Partial<GitFacts>): GitFacts {
  const none = { infoExclude: undefined, globalExcludes: undefined, trackedIgnored: new Set<Raw>(), warnings: [] }
  return { repoRoot, key: 'facts', ...none, ...partial }
}

export function presentIn(tree: Tree, path: Raw, setting: Setting): Present {
  const git = setting.git?.[path]
  return {
    gitignore: typeof tree['.gitignore'] === 'string',
    savepointignore: typeof tree['.savepointignore'] === 'string',
    git: git && factsAt(path, git),
  }
}

export function rulesOf(tree: Tree, setting: Setting = {}): DirRules {
  const find = (path: Raw) => {
    const content = path.split('/').reduce<string | Tree | undefined>((at, name) => (at as Tree)[name], tree)
    if (typeof content !== 'string') throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return Buffer.from(content, 'latin1')
  }
  const outer = { files: [], infoExclude: undefined, globalExcludes: undefined, git: undefined, warnings: [] }
  return createRules({
    read: setting.read ?? find,
    config: { ignoreGitignore: false, additional: [], keep: [], ...setting.config },
    present: presentIn(tree, '', setting),
    outer: { ...outer, ...setting.outer },
    onWarning: text => setting.warnings?.push(text),
  })
}

/** Every path that a walk sees, with "capture", "tracked-only" or "source:line:pattern". */
export function walk(tree: Tree, setting: Setting = {}): Record<Raw, string> {
  const seen: Record<Raw, string> = {}
  const visit = (dir: Tree, path: Raw, rules: DirRules) => {
    for (const [name, child] of Object.entries(dir)) {
      const verdict = rules.verdict(name, typeof child !== 'string', setting.sizeBytes ?? 10)
      const at = joinRaw(path, name)
      const rule = verdict.kind === 'exclude' ? verdict.rule : undefined
      seen[at] = rule ? [rule.source, rule.line, rule.pattern].join(':') : verdict.kind
      if (typeof child !== 'string' && !rule) visit(child, at, rules.enter(name, presentIn(child, at, setting)))
    }
  }
  visit(tree, '', rulesOf(tree, setting))
  return seen
}
export const captured = (tree: Tree, setting?: Setting) =>
  Object.entries(walk(tree, setting))
    .filter(([, verdict]) => verdict === 'capture')
    .map(([path]) => path)
