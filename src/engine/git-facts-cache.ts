/** The remembered answers of git, kept beside the stat cache. Losing them costs time only. */
import { readFileSync } from 'node:fs'
import type { GitFactsCache } from '../files/git-facts.ts'
import { writeByRename } from '../store/durable.ts'

export function openGitCache(file: string): GitFactsCache & { save(): void } {
  let known: Record<string, string[]> = {}
  try {
    known = JSON.parse(readFileSync(file, 'utf8'))
  } catch {}
  const used: Record<string, string[]> = {}
  let changed = false
  return {
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
