/** The remembered answers of git, kept beside the stat cache. Losing them costs time only. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GitFactsCache } from '../files/git-facts.ts'
import type { Raw } from '../model/raw-path.ts'
import { writeByRename } from '../store/durable.ts'
import type { Context } from './context.ts'

export const gitCacheOf = ({ timelineDir }: Pick<Context, 'timelineDir'>): string => join(timelineDir, 'git-facts.json')

/** `repositories`: of which something is remembered, relative to the target. */
export function openGitCache(file: string): GitFactsCache & { repositories(): Raw[]; save(): void } {
  let known: Record<string, string[]> = {}
  try {
    known = JSON.parse(readFileSync(file, 'utf8'))
  } catch {}
  const used: Record<string, string[]> = {}
  let changed = false
  return {
    repositories: () =>
      Object.keys(known).flatMap(key => (key.startsWith('tracked ') ? [key.slice('tracked '.length)] : [])),
    get: key => {
      if (Array.isArray(known[key])) used[key] = known[key]
      return used[key]
    },
    set: (key, value) => {
      used[key] = value
      changed = true
    },
    save: () => {
      if (!changed) return
      writeByRename(file, [Buffer.from(JSON.stringify(used))])
    },
  }
}
