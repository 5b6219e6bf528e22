/**
 * What git knows of single paths of a work tree: whether they are tracked, which object HEAD has for them, and whether ignore rules
 * exclude them. Nothing here runs a filter or refreshes an index.
 */
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { findGitDir, type GitDir, joinBytes, tryRead } from './git-dir.ts'
import type { IndexEntry } from './git-index.ts'
import { type GitCommand, type GitOptions, runGit } from './run-git.ts'
import { askRules, isSparseIndex, trackedFiles } from './sparse-index.ts'

export interface WorkTree {
  root: Raw
  /** undefined: no commit yet, or git is not there. */
  head: string | undefined
  tracked: Map<Raw, IndexEntry>
  /** Path → object. */
  committed: Map<Raw, string>
  ignored: Set<Raw>
}

const TIMEOUT_MS = 60_000
const HEAD_MAX_BYTES = 4096
/** Paths that are named to git. A list of arguments has room for them, whatever else is in it. */
const MAX_NAMED = 64
const NAMEABLE = /^[\x01-\x7f]{1,512}$/
const OID = /^[0-9a-f]{40}([0-9a-f]{24})?$/

/** Finds out which work tree paths belong to; remembers what it has seen. */
export class WorkTreeFinder {
  private readonly roots = new Map<Raw, Raw | undefined>()

  /** Of a path; undefined: none. The root itself belongs to what is above it. */
  rootOf(path: Raw): Raw | undefined {
    const slash = path.lastIndexOf('/')
    return slash <= 0 ? this.rootAt('/') : this.rootAt(path.slice(0, slash))
  }

  private rootAt(directory: Raw): Raw | undefined {
    if (this.roots.has(directory)) return this.roots.get(directory)
    const isRoot = findGitDir(rawToBytes(directory)) !== undefined
    const slash = directory.lastIndexOf('/')
    const above = directory === '/' ? undefined : slash === 0 ? '/' : directory.slice(0, slash)
    const root = isRoot ? directory : above === undefined ? undefined : this.rootAt(above)
    this.roots.set(directory, root)
    return root
  }
}

export const belowRoot = (root: Raw, path: Raw): Raw => path.slice(root === '/' ? 1 : root.length + 1)

/** HEAD of a work tree; undefined: no commit yet, or git is not there. */
export async function headOf(root: Raw, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const read = readHead(root)
  if (read !== undefined) return read
  const { stdout, code } = await ask('rev-parse', ['--verify', '--quiet', 'HEAD^{commit}'], root, env)
  const head = stdout.toString().trim()
  return code === 0 && OID.test(head) ? head : undefined
}

/** Without asking git, where that is plain: HEAD is a commit, or names a branch that is a file of its own. */
function readHead(root: Raw): string | undefined {
  const git = findGitDir(rawToBytes(root))
  if (!git) return undefined
  const read = (directory: Buffer, name: string) =>
    tryRead(joinBytes(directory, name), HEAD_MAX_BYTES).content?.toString('latin1').trim()
  const head = read(git.dir, 'HEAD')
  const branch = head === undefined ? undefined : /^ref: (refs\/[^\0]+)$/.exec(head)?.[1]
  const commit = branch === undefined || branch.includes('..') ? head : read(git.common, branch)
  return commit !== undefined && OID.test(commit) ? commit : undefined
}

/** `paths`: relative to the root; of these all is told, of others perhaps. */
export async function readWorkTree(root: Raw, paths: readonly Raw[], env: NodeJS.ProcessEnv): Promise<WorkTree> {
  const head = await headOf(root, env)
  const git = findGitDir(rawToBytes(root))
  if (git && isSparseIndex(git)) return readSparse(root, git, head, paths, env)
  const only = onlyOf(paths)
  const [index, tree, ignored] = await Promise.all([
    ask('ls-files', ['--stage', '--debug', '-z', '--full-name', ...only], root, env),
    head === undefined ? undefined : ask('ls-tree', ['-r', '-z', '--full-tree', head, ...only], root, env),
    askIgnored(
      root,
      paths.filter(path => path !== ''),
      env,
    ),
  ])
  return {
    root,
    head,
    tracked: parseIndex(index.stdout),
    committed: tree ? parseTree(tree.stdout) : new Map(),
    ignored,
  }
}

/** The same where the index is sparse, which that would have git write to the repository for. */
async function readSparse(
  root: Raw,
  git: GitDir,
  head: string | undefined,
  paths: readonly Raw[],
  env: NodeJS.ProcessEnv,
): Promise<WorkTree> {
  const tree = head === undefined ? undefined : await ask('ls-tree', ['-r', '-z', '--full-tree', head], root, env)
  const all = trackedFiles(git, optionsAt(root, env))
  const tracked = 'code' in all ? new Map<Raw, IndexEntry>() : all
  const names = [...tracked.keys()]
  const isTracked = (path: Raw) => tracked.has(path) || names.some(each => each.startsWith(`${path}/`))
  const asked = paths.filter(path => path !== '')
  const ignored = asked.length === 0 ? [] : askRules(asked, optionsAt(root, env)).ignored
  return {
    root,
    head,
    tracked,
    committed: tree ? parseTree(tree.stdout) : new Map(),
    ignored: new Set(ignored.filter(path => !isTracked(path))),
  }
}

/** Few paths are named: a large repository is not listed for the sake of a program that was looked for in it. */
function onlyOf(paths: readonly Raw[]): string[] {
  const isShort = paths.length <= MAX_NAMED && paths.every(path => path !== '' && NAMEABLE.test(path))
  return isShort ? ['--', ...paths] : []
}

/** What is tracked is never ignored. */
async function askIgnored(root: Raw, paths: readonly Raw[], env: NodeJS.ProcessEnv): Promise<Set<Raw>> {
  if (paths.length === 0) return new Set()
  // A colon at the beginning would mean something to git.
  const input = paths.map(path => `./${path}`).join('\0')
  const { stdout } = await ask('check-ignore', ['-z', '--stdin'], root, env, input)
  return new Set(zeroSeparated(stdout).map(path => path.slice(2)))
}

/** The bytes of an object, as git has them. undefined: it is not there. */
export async function readObject(root: Raw, oid: string, env: NodeJS.ProcessEnv): Promise<Buffer | undefined> {
  const { stdout, code } = await ask('cat-file', ['blob', oid], root, env)
  return code === 0 ? stdout : undefined
}

function ask(command: GitCommand, args: string[], root: Raw, env: NodeJS.ProcessEnv, input?: Raw) {
  const options = optionsAt(root, env)
  return runGit(command, args, input === undefined ? options : { ...options, input: rawToBytes(input) })
}

const optionsAt = (root: Raw, env: NodeJS.ProcessEnv): GitOptions => ({
  cwd: rawToBytes(root),
  timeoutMs: TIMEOUT_MS,
  repository: '',
  env,
})

const zeroSeparated = (bytes: Buffer): Raw[] => rawFromBytes(bytes).split('\0').slice(0, -1)

/** `<mode> <oid> <type>\t<path>`, or with size. */
function parseTree(bytes: Buffer): Map<Raw, string> {
  const found = new Map<Raw, string>()
  for (const line of zeroSeparated(bytes)) {
    const tab = line.indexOf('\t')
    found.set(line.slice(tab + 1), line.slice(0, tab).split(' ')[2]!)
  }
  return found
}

/** `<mode> <oid> <stage>\t<path>\0`, and then lines of what `--debug` tells. */
function parseIndex(bytes: Buffer): Map<Raw, IndexEntry> {
  const found = new Map<Raw, IndexEntry>()
  const parts = rawFromBytes(bytes).split('\0')
  let before = parts[0]
  for (const part of parts.slice(1)) {
    const stats = /^ {2}ctime:.*\n {2}mtime: (\d+):(\d+)\n.*\n.*\n {2}size: (\d+).*\n/.exec(part)
    const tab = before!.indexOf('\t')
    const oid = before!.slice(0, tab).split(' ')[1]!
    const mtimeNs = stats ? BigInt(stats[1]!) * 1_000_000_000n + BigInt(stats[2]!) : 0n
    found.set(before!.slice(tab + 1), { oid, size: stats ? Number(stats[3]) : -1, mtimeNs })
    before = stats ? part.slice(stats[0].length) : part
  }
  return found
}
