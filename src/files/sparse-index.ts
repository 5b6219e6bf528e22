/**
 * A sparse index names a directory outside of the sparse checkout by its tree alone. Git expands it for nearly every question, and
 * then stores or touches trees in the repository, which is not ours to write to; no setting turns that off. So the index is read
 * here, git lists the trees that it names, and says what ignore rules exclude without a look at the index.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { type GitDir, joinBytes } from './git-dir.ts'
import { type IndexEntry, readIndexEntries } from './git-index.ts'
import { failure, type GitOptions, type GitResult, runGitSync } from './run-git.ts'

/** The extension that says so is one of the last; it is empty. */
const SPARSE = Buffer.from('sdir\0\0\0\0', 'latin1')
const TAIL_BYTES = 64 * 1024

/** Never missed; where the bytes mean something else, an answer only takes longer. */
export function isSparseIndex({ dir }: GitDir): boolean {
  let fd: number | undefined
  try {
    fd = openSync(joinBytes(dir, 'index'), 'r')
    const tail = Buffer.alloc(TAIL_BYTES)
    const read = readSync(fd, tail, 0, TAIL_BYTES, Math.max(0, fstatSync(fd).size - TAIL_BYTES))
    return tail.subarray(0, read).includes(SPARSE)
  } catch (error) {
    if (!errnoOf(error)) throw error
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Tracked paths in `within` that ignore rules exclude, as `ls-files --cached --ignored` has them there. `options`: at the root. Blocks. */
export function listTrackedIgnored(gitDir: GitDir, within: Raw, options: GitOptions): GitResult {
  const all = trackedFiles(gitDir, options)
  if ('code' in all) return all
  const tracked = [...all.keys()].filter(path => path.startsWith(within))
  const { code, ignored } = askRules(tracked, options)
  // It cannot tell if a path leads through a symlink, for example: then all that is tracked.
  const told = code === 0 || code === 1 ? ignored : tracked
  const stdout = rawToBytes(told.map(path => `${path.slice(within.length)}\0`).join(''))
  return { code: 0, stdout, stderr: '' }
}

/** Which of these ignore rules exclude, tracked or not. Blocks. */
export function askRules(paths: readonly Raw[], options: GitOptions): { code: number; ignored: Raw[] } {
  // A colon at the beginning would mean something to git.
  const input = rawToBytes(paths.map(path => `./${path}\0`).join(''))
  const { code, stdout } = runGitSync('check-ignore', ['--no-index', '-z', '--stdin'], { ...options, input })
  return { code, ignored: zeroSeparated(stdout).map(path => path.slice(2)) }
}

/** Those that the index names, and all in its directories, of which it knows neither size nor time. Or why that cannot be told. Blocks. */
export function trackedFiles({ dir }: GitDir, options: GitOptions): Map<Raw, IndexEntry> | GitResult {
  const entries = readEntries(joinBytes(dir, 'index'))
  if (!entries) return failure('its sparse index cannot be read')
  const found = new Map<Raw, IndexEntry>()
  const add = (path: Raw, oid: string) => found.set(path, { oid, size: -1, mtimeNs: 0n })
  // Most of them are as in the last commit, which takes one process.
  const head = runGitSync('ls-tree', ['-r', '-t', '-z', '--full-tree', 'HEAD'], options)
  const committed = head.code === 0 ? listing(head.stdout) : []
  const trees = new Map(committed.flatMap(({ type, path, oid }) => (type === 'tree' ? [[`${path}/`, oid]] : [])))
  const same = new Set<Raw>()
  for (const [path, entry] of entries) {
    if (!path.endsWith('/')) found.set(path, entry)
    else if (trees.get(path) === entry.oid) same.add(path)
    else {
      const listed = runGitSync('ls-tree', ['-r', '-z', '--full-tree', entry.oid], options)
      if (listed.code !== 0) return listed
      for (const { path: name, oid } of listing(listed.stdout)) add(path + name, oid)
    }
  }
  for (const { type, path, oid } of committed) if (type !== 'tree' && isBelow(path, same)) add(path, oid)
  return found
}

function readEntries(file: Buffer): Map<Raw, IndexEntry> | undefined {
  try {
    return readIndexEntries(readFileSync(file))
  } catch (error) {
    if (!errnoOf(error)) throw error
    return undefined
  }
}

function isBelow(path: Raw, directories: ReadonlySet<Raw>): boolean {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
    if (directories.has(path.slice(0, slash + 1))) return true
  return false
}

/** `<mode> <type> <object>\t<path>`. */
const listing = (bytes: Buffer): { type: string; oid: string; path: Raw }[] =>
  zeroSeparated(bytes).map(line => {
    const tab = line.indexOf('\t')
    const [, type, oid] = line.slice(0, tab).split(' ')
    return { type: type!, oid: oid!, path: line.slice(tab + 1) }
  })

const zeroSeparated = (bytes: Buffer): Raw[] => rawFromBytes(bytes).split('\0').slice(0, -1)
