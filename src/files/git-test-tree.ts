/** For tests: real directories and repositories, and a plain walk with the rules. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { joinRaw, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { joinBytes } from './git-dir.ts'
import { type FactsOptions, type GitFactsCache, readGitFacts } from './git-facts.ts'
import { readOuter } from './git-outer.ts'
import { createRules, type DirRules, type ExcludeConfig } from './ignore-rules.ts'

export class TestTree {
  readonly home: string
  readonly root: Buffer

  constructor(name: Raw = 'work') {
    this.home = realpathSync(mkdtempSync(`${tmpdir()}/savepoint-rules-`))
    this.root = joinBytes(Buffer.from(this.home), name)
    mkdirSync(this.root)
  }

  /** What the user's own git sees; nothing of the machine that the test runs on. */
  get env(): NodeJS.ProcessEnv {
    return { PATH: process.env.PATH, HOME: this.home, GIT_CONFIG_NOSYSTEM: '1' }
  }

  at(path: Raw): Buffer {
    return path === '' ? this.root : joinBytes(this.root, rawToBytes(path))
  }

  write(path: Raw, content: Raw = ''): void {
    mkdirSync(this.at(path.split('/').slice(0, -1).join('/')), { recursive: true })
    writeFileSync(this.at(path), rawToBytes(content))
  }

  /** An empty repository, made without a process. */
  initRepo(path: Raw = '', gitDir: Raw = joinRaw(path, '.git')): void {
    for (const part of ['objects', 'refs', 'info']) mkdirSync(this.at(joinRaw(gitDir, part)), { recursive: true })
    this.write(joinRaw(gitDir, 'HEAD'), 'ref: refs/heads/main\n')
  }

  git(args: string[], input: Raw = '', path: Raw = ''): Raw {
    const cwd = this.at(path).toString('utf8')
    return execFileSync('git', args, { cwd, env: this.env, input: rawToBytes(input), stdio: 'pipe' }).toString('latin1')
  }

  addForced(paths: Raw[], path: Raw = ''): void {
    if (paths.length > 0) this.git(['update-index', '--add', '-z', '--stdin'], `${paths.join('\0')}\0`, path)
  }

  /** A shell program of this name, in a directory of its own, which is returned. */
  program(name: string, script: string): string {
    const dir = `${this.home}/bin`
    mkdirSync(dir, { recursive: true })
    writeFileSync(`${dir}/${name}`, `#!/bin/sh\n${script}\n`)
    chmodSync(`${dir}/${name}`, 0o755)
    return dir
  }

  remove(): void {
    rmSync(this.home, { recursive: true })
  }
}

export const memoryCache = (): GitFactsCache & { entries: Map<string, string[]> } => {
  const entries = new Map<string, string[]>()
  return { entries, get: key => entries.get(key), set: (key, value) => void entries.set(key, value) }
}

export interface WalkResult {
  /** Files that are not in a git directory. */
  captured: Raw[]
  /** The rule as "source:line" by path. */
  excluded: Map<Raw, string>
  rules: DirRules
  warnings: string[]
}

export async function walkTarget(
  tree: TestTree,
  options: Partial<FactsOptions> & { config?: Partial<ExcludeConfig>; target?: Raw } = {},
): Promise<WalkResult> {
  const target = tree.at(options.target ?? '')
  const factsOptions: FactsOptions = { cache: options.cache ?? memoryCache(), env: options.env ?? tree.env }
  const captured: Raw[] = []
  const excluded = new Map<Raw, string>()
  const warnings: string[] = []
  const list = (path: Raw) =>
    readdirSync(path === '' ? target : joinBytes(target, path), { withFileTypes: true, encoding: 'buffer' })
  const presentAt = async (path: Raw) => {
    const files = list(path).map(entry => entry.isFile() && rawFromBytes(entry.name))
    const git = await readGitFacts(target, path, factsOptions)
    return { gitignore: files.includes('.gitignore'), savepointignore: files.includes('.savepointignore'), git }
  }
  const visit = async (path: Raw, rules: DirRules): Promise<void> => {
    for (const entry of list(path)) {
      const name = rawFromBytes(entry.name)
      const at = joinRaw(path, name)
      const verdict = rules.verdict(name, entry.isDirectory(), 10)
      if (verdict.kind === 'exclude') excluded.set(at, `${verdict.rule.source}:${verdict.rule.line}`)
      else if (!entry.isDirectory()) captured.push(at)
      else if (name !== '.git') await visit(at, rules.enter(name, await presentAt(at)))
    }
  }
  const rules = createRules({
    read: path => readFileSync(joinBytes(target, path)),
    config: { ignoreGitignore: false, additional: [], keep: [], ...options.config },
    present: await presentAt(''),
    outer: await readOuter(target, factsOptions),
    onWarning: text => void warnings.push(text),
  })
  await visit('', rules)
  return { captured: captured.sort(), excluded, rules, warnings }
}
