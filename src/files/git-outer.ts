/** The rules that come from outside of a target: of a repository around it, and of the user. */
import { constants, realpathSync } from 'node:fs'
import { type Raw, rawFromBytes, rawFromText } from '../model/raw-path.ts'
import { findGitDir, type GitDir, joinBytes, tryStat } from './git-dir.ts'
import {
  askExcludesFile,
  type FactsOptions,
  factsIn,
  type IgnoreFile,
  namesExcludesFile,
  type OuterRules,
  readExcludes,
  readExcludesFile,
} from './git-facts.ts'
import { mayNameExcludesFile } from './user-git-config.ts'

/** What cannot be read does not count, and is in `warnings`. Throws only when the target vanishes meanwhile. */
export async function readOuter(target: Buffer, options: FactsOptions): Promise<OuterRules> {
  const warnings: string[] = []
  const around = findGitDir(target) === undefined ? findAround(target) : undefined
  const prefix = around === undefined ? '' : around.names.join('/')
  const global = await readGlobalExcludes(target, around, options, warnings)
  const globalExcludes = global && { ...global, prefix }
  if (around === undefined) return { files: [], infoExclude: undefined, globalExcludes, git: undefined, warnings }

  const { root, gitDir, names, up } = around
  const info = readExcludes(joinBytes(gitDir.common, 'info/exclude'), `${up}.git/info/exclude`, warnings)
  const infoExclude = info && { ...info, prefix }
  const files: IgnoreFile[] = []
  for (let level = 0; level < names.length; level++) {
    const path = joinBytes(root, ...names.slice(0, level), '.gitignore')
    const source = `${'../'.repeat(names.length - level)}.gitignore`
    const file = readExcludes(path, source, warnings, constants.O_NOFOLLOW)
    if (file !== undefined) files.unshift({ ...file, prefix: names.slice(level).join('/') })
  }
  const git = await factsIn({
    ...options,
    target,
    repoRoot: up.slice(0, -1),
    gitDir,
    cwd: target,
    up,
    pathPrefix: '',
    infoExclude,
    globalExcludes,
    ignoreFiles: files.map(file => file.content),
    warnings: [],
  })
  return { files, infoExclude, globalExcludes, git, warnings: [...warnings, ...git.warnings] }
}

interface Around {
  root: Buffer
  gitDir: GitDir
  /** From the root of the repository to the target. */
  names: Raw[]
  /** Back again: '../' repeated. */
  up: string
}

/** The nearest repository above the target, on the same filesystem as git looks for it. */
function findAround(target: Buffer): Around | undefined {
  const device = tryStat(target)?.dev
  if (device === undefined) return undefined
  const path = rawFromBytes(realpathSync.native(target, { encoding: 'buffer' }))
  const components = path.split('/').filter(name => name !== '')
  for (let length = components.length - 1; length >= 0; length--) {
    // Inside of a git directory the rules of its work tree mean nothing.
    if (components[length] === '.git') return undefined
    const root = Buffer.from(`/${components.slice(0, length).join('/')}`, 'latin1')
    if (tryStat(root)?.dev !== device) return undefined
    const gitDir = findGitDir(root)
    const names = components.slice(length)
    if (gitDir !== undefined) return { root, gitDir, names, up: '../'.repeat(names.length) }
  }
  return undefined
}

async function readGlobalExcludes(
  target: Buffer,
  around: Around | undefined,
  options: FactsOptions,
  warnings: string[],
): Promise<IgnoreFile | undefined> {
  const gitDir = around?.gitDir ?? findGitDir(target)
  const mayBeNamed = mayNameExcludesFile(options.env) || (gitDir !== undefined && namesExcludesFile(gitDir))
  const [cwd, up] = gitDir === undefined ? [Buffer.from('/'), undefined] : [target, around?.up ?? '']
  const named = mayBeNamed ? await askExcludesFile(cwd, up, options) : undefined
  if (named !== undefined) return readExcludesFile(named, around?.root ?? target, warnings)
  const { XDG_CONFIG_HOME, HOME } = options.env
  const directory = XDG_CONFIG_HOME || (HOME && `${HOME}/.config`)
  if (!directory) return undefined
  const path = rawFromText(`${directory}/git/ignore`)
  return readExcludes(Buffer.from(path, 'latin1'), path, warnings)
}
