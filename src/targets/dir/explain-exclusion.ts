/** Which rule excludes a path: for `coverage`, which must name the line that a person can edit. */
import type { ExcludeConfig } from '../../files/ignore-rules.ts'
import type { Raw } from '../../model/raw-path.ts'
import { joinRaw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { openRules } from './rule-context.ts'

export interface ExclusionRule {
  source: string
  pattern: string
  line?: number
}

export async function explainExclusion(
  options: { root: number; rootPath: Buffer; exclude: ExcludeConfig; env: NodeJS.ProcessEnv },
  path: Raw,
): Promise<ExclusionRule | undefined> {
  const memory = new Map<string, string[]>()
  const gitCache = {
    get: (key: string) => memory.get(key),
    set: (key: string, value: string[]) => void memory.set(key, value),
  }
  const context = await openRules({ ...options, gitCache, onWarning: () => {} })
  let rules = context.root
  let directory: Raw = ''
  const names = path.split('/')
  for (const [i, name] of names.entries()) {
    const here = joinRaw(directory, name)
    const stat = statOrNothing(options.root, here)
    const isDirectory = i < names.length - 1 || ((stat?.mode ?? 0) & 0o170000) === 0o040000
    const verdict = rules.verdict(name, isDirectory, stat?.size ?? 0)
    if (verdict.kind === 'exclude') return verdict.rule
    if (!isDirectory) return undefined
    const isFile = (file: Raw) =>
      ((statOrNothing(options.root, joinRaw(here, file))?.mode ?? 0) & 0o170000) === 0o100000
    const git = statOrNothing(options.root, joinRaw(here, '.git')) ? await context.gitFacts(here) : undefined
    rules = rules.enter(name, { gitignore: isFile('.gitignore'), savepointignore: isFile('.savepointignore'), git })
    directory = here
  }
  return undefined
}

function statOrNothing(root: number, path: Raw) {
  try {
    return addon.statAt(root, path)
  } catch {
    return undefined
  }
}
