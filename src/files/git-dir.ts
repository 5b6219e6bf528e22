/** Finds the parts of a repository without asking git. Paths are bytes. */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'

export interface GitDir {
  /** Holds HEAD and the index. */
  dir: Buffer
  /** Holds config, info and objects: `dir` itself, except in a linked worktree. */
  common: Buffer
}

/** What a `.git` file or a `commondir` file may hold at most. */
const POINTER_MAX_BYTES = 64 * 1024

/** The git directory of a work tree, undefined when it is not one (its `.git` is missing, empty or broken). */
export function findGitDir(workTree: Buffer): GitDir | undefined {
  const entry = joinBytes(workTree, '.git')
  const kind = kindOf(entry)
  if (kind === 'directory') return checkedGitDir(entry)
  if (kind !== 'file') return undefined
  const target = readPointer(entry, 'gitdir: ')
  return target === undefined ? undefined : checkedGitDir(resolveBytes(workTree, target))
}

function checkedGitDir(dir: Buffer): GitDir | undefined {
  if (kindOf(joinBytes(dir, 'HEAD')) === undefined) return undefined
  const pointer = readPointer(joinBytes(dir, 'commondir'), '')
  const common = pointer === undefined ? dir : resolveBytes(dir, pointer)
  const complete = ['objects', 'refs'].every(name => kindOf(joinBytes(common, name)) === 'directory')
  return complete ? { dir, common } : undefined
}

function readPointer(path: Buffer, label: string): Buffer | undefined {
  const text = tryRead(path, POINTER_MAX_BYTES).content?.toString('latin1')
  if (!text?.startsWith(label)) return undefined
  const target = text.slice(label.length).replace(/[\r\n]+$/, '')
  return target === '' ? undefined : Buffer.from(target, 'latin1')
}

/** `content` is undefined when there is no such file; then `problem` says why, unless it simply does not exist. */
export interface ReadAttempt {
  content: Buffer | undefined
  problem?: string
}

/** Reads a regular file, without waiting for a FIFO or reading a device. `flags`: e.g. O_NOFOLLOW. */
export function tryRead(path: Buffer, maxBytes: number, flags = 0): ReadAttempt {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags)
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) return { content: undefined }
    if (stat.size > maxBytes) return { content: undefined, problem: `it is larger than ${maxBytes} bytes` }
    return { content: readFileSync(descriptor) }
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    return errno === 'ENOENT' || errno === 'ENOTDIR'
      ? { content: undefined }
      : { content: undefined, problem: `it cannot be read (${errno})` }
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** undefined when it does not exist or cannot be looked at. Follows symlinks, as git does. */
export function tryStat(path: Buffer): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

function kindOf(path: Buffer): 'directory' | 'file' | 'other' | undefined {
  const stat = tryStat(path)
  if (stat === undefined) return undefined
  return stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : 'other'
}

const SLASH = Buffer.from('/')

export const joinBytes = (dir: Buffer, ...names: (string | Buffer)[]): Buffer =>
  Buffer.concat([dir, ...names.flatMap(name => [SLASH, typeof name === 'string' ? Buffer.from(name, 'latin1') : name])])

const resolveBytes = (base: Buffer, path: Buffer): Buffer => (path[0] === SLASH[0] ? path : joinBytes(base, path))
