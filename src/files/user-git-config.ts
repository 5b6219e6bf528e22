/** Whether the settings of the user or of the machine can name a `core.excludesFile`: most do not, and need no process. */
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rawFromText, rawToBytes } from '../model/raw-path.ts'
import { tryRead } from './git-dir.ts'
import { findGit } from './run-git.ts'

const CONFIG_MAX_BYTES = 1024 * 1024

/** What a file of settings says when it may name one: itself, in a file that it includes, or in one of a work tree. */
export const excludesPattern = /excludesfile|\[\s*include|worktreeconfig/i

/** true also when it cannot be known. Where git was built to look for the machine's settings is known on Linux only. */
export function mayNameExcludesFile(env: NodeJS.ProcessEnv): boolean {
  const git = findGit(env)
  if (git === undefined) return false
  if (process.platform !== 'linux') return true
  const { HOME, XDG_CONFIG_HOME } = env
  const files = [
    '/etc/gitconfig',
    join(dirname(git), '../etc/gitconfig'),
    join(dirname(realpathSync(git)), '../etc/gitconfig'),
    XDG_CONFIG_HOME ? join(XDG_CONFIG_HOME, 'git/config') : HOME && join(HOME, '.config/git/config'),
    HOME && join(HOME, '.gitconfig'),
  ]
  return files.some(file => {
    if (!file) return false
    const { content, problem } = tryRead(rawToBytes(rawFromText(file)), CONFIG_MAX_BYTES)
    return problem !== undefined || (content !== undefined && excludesPattern.test(content.toString('latin1')))
  })
}
