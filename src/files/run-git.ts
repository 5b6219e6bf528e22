/**
 * The only place that starts git. A repository is somebody else's data, and its configuration can name programs: no
 * command run here may start one of them. So: only commands that run no filter, textconv or hook by themselves, every
 * such setting overridden, no network or local transport (a lazy fetch of a missing object would run `uploadpack`), no
 * `GIT_*` of the caller, and no git found through a relative `PATH` entry, which would be looked up in the repository.
 */

import { spawn, spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, openSync } from 'node:fs'

/**
 * Commands that never read a file through a filter. `status`, `diff`, `add` and their like are not among them: the
 * filters that a repository configures run whenever they compare content, and no option turns that off.
 */
export type GitCommand = 'ls-files' | 'config' | 'rev-parse' | 'version' | 'ls-tree' | 'check-ignore' | 'cat-file'

export interface GitOptions {
  /** Where git is started, as bytes. */
  cwd: Buffer
  timeoutMs: number
  /** The way from `cwd` up to the root of a work tree: '' or '../' repeated. undefined: outside of any repository. */
  repository: string | undefined
  /** What it gets to read. */
  input?: Buffer
  /** The environment of the user: `PATH`, `HOME` and `XDG_CONFIG_HOME` count. */
  env: NodeJS.ProcessEnv
}

export interface GitResult {
  /** 0 is success. -1: git did not run to its end, and `stderr` says why. */
  code: number
  stdout: Buffer
  stderr: string
}

/** More output than this is a failure. */
const GIT_OUTPUT_MAX_BYTES = 256 * 1024 * 1024
const GIT_ERROR_SHOWN_CHARS = 2000

const overrides = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.sshCommand=false',
  'core.askPass=false',
  'core.attributesFile=/dev/null',
  // Git would make a sparse index of the one that it reads, and store the trees of it.
  'core.sparseCheckout=false',
  'diff.external=',
  'credential.helper=',
  'protocol.allow=never',
  'safe.directory=*',
]
const fixedArguments = ['--no-pager', '--no-replace-objects']
/** The one command that refuses it. What it is given must not begin with a colon. */
const literally = (command: GitCommand) => (command === 'check-ignore' ? [] : ['--literal-pathspecs'])

/** Runs git and waits without blocking. Never throws: what goes wrong is in the result. */
export function runGit(command: GitCommand, args: string[], options: GitOptions): Promise<GitResult> {
  const program = findGit(options.env)
  if (program === undefined) return Promise.resolve(failure(notInstalled))
  return withCwd<Promise<GitResult>>(
    options.cwd,
    why => Promise.resolve(failure(why)),
    (cwd, release) =>
      new Promise(resolve => {
        const child = spawn(program, fullArguments(command, args, options), {
          cwd,
          env: environment(options.env),
          stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
        })
        // It may end without having read everything.
        child.stdin?.on('error', () => {})
        child.stdin?.end(options.input)
        const out: Buffer[] = []
        let outBytes = 0
        let error = ''
        let finished = false
        const finish = (result: GitResult) => {
          if (finished) return
          finished = true
          clearTimeout(timer)
          release()
          child.stdout!.destroy()
          child.stderr!.destroy()
          resolve(result)
        }
        const abort = (why: string) => {
          child.kill('SIGKILL')
          finish(failure(why))
        }
        const timer = setTimeout(() => abort(tookTooLong(options)), options.timeoutMs)
        child.stdout!.on('data', (chunk: Buffer) => {
          out.push(chunk)
          outBytes += chunk.length
          if (outBytes > GIT_OUTPUT_MAX_BYTES) abort(tooMuch)
        })
        child.stderr!.on('data', (chunk: Buffer) => {
          if (error.length < GIT_ERROR_SHOWN_CHARS) error += chunk.toString('utf8')
        })
        child.on('error', cause => finish(failure(whyNotStarted(cause))))
        child.on('close', (code, signal) =>
          finish(
            code === null ? failure(`git was ended by ${signal}`) : { code, stdout: Buffer.concat(out), stderr: error },
          ),
        )
      }),
  )
}

/** Like `runGit`, but blocks. For the rare question that comes up in the middle of a walk, or of a sparse index. */
export function runGitSync(command: GitCommand, args: string[], options: GitOptions): GitResult {
  const program = findGit(options.env)
  if (program === undefined) return failure(notInstalled)
  return withCwd(options.cwd, failure, (cwd, release) => {
    const result = spawnSync(program, fullArguments(command, args, options), {
      cwd,
      env: environment(options.env),
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      input: options.input,
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: GIT_OUTPUT_MAX_BYTES,
    })
    release()
    if (result.error) {
      const { code } = result.error as NodeJS.ErrnoException
      if (code === 'ETIMEDOUT') return failure(tookTooLong(options))
      return failure(code === 'ENOBUFS' ? tooMuch : whyNotStarted(result.error))
    }
    if (result.status === null) return failure(`git was ended by ${result.signal}`)
    return { code: result.status, stdout: result.stdout, stderr: result.stderr.toString('utf8') }
  })
}

export const failure = (why: string): GitResult => ({ code: -1, stdout: Buffer.alloc(0), stderr: why })
const tooMuch = `git wrote more than ${GIT_OUTPUT_MAX_BYTES} bytes`
const tookTooLong = ({ timeoutMs }: GitOptions) => `git did not end within ${timeoutMs} ms`
const whyNotStarted = (error: Error) => `git does not start (${error.message})`
export const notInstalled = 'git is not installed'

const fullArguments = (command: GitCommand, args: string[], { repository }: GitOptions) => [
  ...fixedArguments,
  ...literally(command),
  ...overrides.flatMap(setting => ['-c', setting]),
  ...(repository === undefined ? [] : [`--git-dir=${repository}.git`, `--work-tree=${repository || '.'}`]),
  command,
  ...args,
]

const searchPath = (env: NodeJS.ProcessEnv) =>
  (env.PATH ?? '/usr/local/bin:/usr/bin:/bin').split(':').filter(dir => dir.startsWith('/'))

export function findGit(env: NodeJS.ProcessEnv): string | undefined {
  return searchPath(env)
    .map(dir => `${dir}/git`)
    .find(path => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

function environment(caller: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(caller).filter(([name]) => !name.startsWith('GIT_'))
  return {
    ...Object.fromEntries(kept),
    PATH: searchPath(caller).join(':'),
    LC_ALL: 'C',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ATTR_NOSYSTEM: '1',
  }
}

/** child_process takes a directory as text only; one that is not UTF-8 is named through a descriptor of this process. */
function withCwd<T>(cwd: Buffer, fail: (why: string) => T, run: (cwd: string, release: () => void) => T): T {
  const text = cwd.toString('utf8')
  if (Buffer.from(text, 'utf8').equals(cwd)) return run(text, () => {})
  let descriptor: number
  try {
    descriptor = openSync(cwd, constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    return fail(`its directory cannot be opened (${(error as NodeJS.ErrnoException).code})`)
  }
  return run(`/proc/${process.pid}/fd/${descriptor}`, () => closeSync(descriptor))
}
