/** A protected directory in a temporary place: its own home, its own user home, nothing of the machine's settings. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type OpenOptions, open, type Savepoint } from '../../src/index.ts'

export class Workspace {
  /** Holds everything below; `remove` deletes it. */
  readonly base: string
  readonly dir: string
  /** $SAVEPOINT_HOME. */
  readonly home: string
  /** $HOME. */
  readonly userHome: string
  readonly notices: string[] = []
  readonly #opened: Savepoint[] = []

  readonly #settings: NodeJS.ProcessEnv

  /** `settings`: variables that everything in it sees. */
  constructor(name = 'work', settings: NodeJS.ProcessEnv = {}) {
    this.#settings = settings
    this.base = realpathSync(mkdtempSync(join(tmpdir(), 'savepoint-test-')))
    this.dir = join(this.base, name)
    this.home = join(this.base, 'store home')
    this.userHome = join(this.base, 'user')
    mkdirSync(this.dir)
    mkdirSync(this.userHome)
  }

  get env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      // What is left in it is noticed (scripts/left-behind.sh).
      TMPDIR: tmpdir(),
      HOME: this.userHome,
      SAVEPOINT_HOME: this.home,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@example.org',
      GIT_COMMITTER_NAME: 'c',
      GIT_COMMITTER_EMAIL: 'c@example.org',
      ...this.#settings,
    }
  }

  /** Opens the timeline of `dir`, making it if need be. Notices are collected. Closed by `remove`. */
  async open(options: OpenOptions = {}): Promise<Savepoint> {
    const { cwd = this.dir, env = this.env, home = this.home, create = true, ...rest } = options
    const savepoint = await open({ cwd, env, home, create, onNotice: text => void this.notices.push(text), ...rest })
    this.#opened.push(savepoint)
    return savepoint
  }

  at(path: string): string {
    return join(this.dir, path)
  }

  write(path: string, content: string | Buffer = `${path}\n`): void {
    mkdirSync(dirname(this.at(path)), { recursive: true })
    writeFileSync(this.at(path), content)
  }

  /** undefined when there is no such file. */
  read(path: string): string | undefined {
    try {
      return readFileSync(this.at(path), 'utf8')
    } catch {
      return undefined
    }
  }

  /** A shell script in `dir`; throws when it fails. */
  sh(script: string, cwd = this.dir): string {
    return execFileSync('sh', ['-ec', script], { cwd, env: this.env, stdio: 'pipe' }).toString()
  }

  git(...args: string[]): string {
    return execFileSync('git', args, { cwd: this.dir, env: this.env, stdio: 'pipe' }).toString()
  }

  remove(): void {
    for (const savepoint of this.#opened) savepoint.close()
    try {
      // What a run has left running may still be recorded.
      // Where somebody else removes something meanwhile, Node stops without a word.
      for (let i = 0; i < 3 && existsSync(this.base); i++)
        rmSync(this.base, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
    } catch {
      // Only its owner's way back in may be missing: tests take modes away.
      execFileSync('chmod', ['-R', 'u+rwX', this.base], { stdio: 'ignore' })
      rmSync(this.base, { recursive: true, force: true })
    }
  }
}

export async function inWorkspace(work: (workspace: Workspace, savepoint: Savepoint) => Promise<void>): Promise<void> {
  const workspace = new Workspace()
  try {
    await work(workspace, await workspace.open())
  } finally {
    workspace.remove()
  }
}
