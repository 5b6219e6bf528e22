/** Opens the ignore rules of a target: its ignore files, its repository, and what lies around it. */
import { constants, readSync } from 'node:fs'
import { type GitFactsCache, readGitFacts } from '../../files/git-facts.ts'
import { readOuter } from '../../files/git-outer.ts'
import { createRules, type ExcludeConfig } from '../../files/ignore-rules.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { RuleContext } from './pass.ts'

const MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024

export interface RuleOptions {
  root: number
  rootPath: Buffer
  exclude: ExcludeConfig
  gitCache: GitFactsCache
  env: NodeJS.ProcessEnv
  onWarning: (text: string) => void
}

export async function openRules(options: RuleOptions): Promise<RuleContext> {
  const { root, rootPath, exclude, gitCache, env, onWarning } = options
  const factsOptions = { cache: gitCache, env }
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
  const read = (path: Raw) => readSmallFile(root, path)
  const present = { gitignore: isFile('.gitignore'), savepointignore: isFile('.savepointignore'), git }
  return { root: createRules({ read, config: exclude, present, outer, onWarning }), gitFacts }
}

/** Throws EFBIG for a file that is too large to be rules: then they do not apply, with a warning. */
function readSmallFile(root: number, path: Raw): Buffer {
  const fd = addon.openAt(root, path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW, 0)
  try {
    const { size } = addon.statFd(fd)
    if (size > MAX_IGNORE_FILE_BYTES) throw Object.assign(new Error(`EFBIG: ${size} bytes`), { code: 'EFBIG' })
    const buffer = Buffer.alloc(size)
    let filled = 0
    for (let count = 1; count > 0 && filled < size; filled += count)
      count = readSync(fd, buffer, filled, size - filled, filled)
    return buffer.subarray(0, filled)
  } finally {
    addon.close(fd)
  }
}
