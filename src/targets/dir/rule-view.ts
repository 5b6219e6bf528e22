/** Where ignore rules are looked for: on the disk as it is, or as a restore will leave it. */
import type { GitFacts } from '../../files/git-facts.ts'
import type { Entry } from '../../model/entry.ts'
import { joinRaw, nameOf, parentOf, type Raw } from '../../model/raw-path.ts'
import { readContent } from '../../store/read-content.ts'
import type { Store } from '../../store/store.ts'
import { entryAt, withAllBelow } from '../../store/tree-lookup.ts'
import { statOrNothing } from './look-at.ts'
import { readSmallFile } from './read-small-file.ts'
import type { PlanAction } from './restore-plan.ts'
import { S_IFMT, S_IFREG } from './walk-record.ts'

/** With a larger one its rules do not apply, with a warning. */
const MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024

export interface RuleView {
  exists(path: Raw): boolean
  isFile(path: Raw): boolean
  /** Throws errno errors. */
  read(path: Raw): Buffer
  /** Of the repository at `directory`, from what git says about it today. */
  facts(directory: Raw, today: GitFacts | undefined): GitFacts | undefined
}

export function diskView(root: number): RuleView {
  const statOf = (path: Raw) => statOrNothing(root, path)
  return {
    exists: path => statOf(path) !== undefined,
    isFile: path => ((statOf(path)?.mode ?? 0) & S_IFMT) === S_IFREG,
    read: path => readSmallFile(root, path, MAX_IGNORE_FILE_BYTES),
    facts: (_directory, today) => today,
  }
}

/** What the disk will be after `actions`. What git tracks is taken as it is today: a plan knows those paths by itself. */
export function plannedView(root: number, store: Store, actions: readonly PlanAction[]): RuleView {
  const disk = diskView(root)
  const byPath = new Map(actions.map(action => [action.path, action]))
  /** undefined: as it is. */
  const planned = (path: Raw): { entry: Entry | undefined } | undefined => {
    for (let at = path; at !== ''; at = parentOf(at)) {
      const action = byPath.get(at)
      if (action === undefined || action.action === 'metadata') continue
      const top = action.action === 'delete' ? undefined : action.entry
      if (at === path || top?.kind !== 'dir') return { entry: at === path ? top : undefined }
      return { entry: entryAt(store, top.content, path.slice(at.length + 1)) }
    }
    return undefined
  }
  const view: RuleView = {
    exists: path => {
      const then = planned(path)
      return then ? then.entry !== undefined : disk.exists(path)
    },
    isFile: path => {
      const then = planned(path)
      return then ? then.entry?.kind === 'file' : disk.isFile(path)
    },
    read: path => {
      const then = planned(path)
      if (!then) return disk.read(path)
      const content = then.entry?.kind === 'file' ? readContent(store, then.entry) : undefined
      if (!content) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
      return content
    },
    facts: (repoRoot, today) => {
      const path = joinRaw(repoRoot, '.git/info/exclude')
      const facts = today ?? noFacts(repoRoot)
      if (!planned(path)) return { ...facts, confirm: undefined }
      const infoExclude = view.isFile(path) ? { source: path, content: view.read(path), prefix: '' } : undefined
      return { ...facts, infoExclude, confirm: undefined }
    },
  }
  return view
}

const noFacts = (repoRoot: Raw): GitFacts => ({
  repoRoot,
  infoExclude: undefined,
  globalExcludes: undefined,
  trackedIgnored: new Set(),
  key: '',
  warnings: [],
})

/** Whether ignore rules may be others after them. */
export function changesRules(store: Store, actions: readonly PlanAction[]): boolean {
  return actions.some(action => {
    if (action.action === 'metadata') return false
    if (isRule(action.path)) return true
    const sides = [
      action.action === 'create' ? undefined : action.live,
      action.action === 'delete' ? undefined : action.entry,
    ]
    return sides.some(entry => entry?.kind === 'dir' && holdsRules(store, action.path, entry))
  })
}

function holdsRules(store: Store, path: Raw, entry: Entry): boolean {
  for (const found of withAllBelow(store, { path, entry })) if (isRule(found.path)) return true
  return false
}

const ruleFiles: ReadonlySet<Raw> = new Set(['.gitignore', '.savepointignore', '.git'])
const isRule = (path: Raw): boolean => ruleFiles.has(nameOf(path)) || /(?:^|\/)\.git\/info\/exclude$/.test(path)
