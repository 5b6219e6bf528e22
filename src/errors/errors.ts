/**
 * The catalogue of everything that can go wrong, and the one class that carries it. Faces render these; callers match
 * `code`, never message text. The message says the present state ("Cannot roll back src/a: it is outside the target"),
 * the hint says the next step and is written where the error is thrown.
 */
import { constants } from 'node:os'

export const errorCatalogue = {
  failed: { exit: 1, meaning: 'The operation could not be carried out' },
  'io.failed': { exit: 1, meaning: 'The operating system refused a read or a write' },
  'disk.full': { exit: 1, meaning: 'The disk is full or below the free-space floor, or a quota is used up' },
  'target.replaced': { exit: 1, meaning: 'The target directory is not the one the timeline belongs to' },
  'target.missing': { exit: 1, meaning: 'The target directory does not exist' },
  'target.refused': { exit: 1, meaning: 'The target is refused without --force' },
  'snapshot.pinned': { exit: 1, meaning: 'The snapshot is kept by a rule and cannot be deleted this way' },
  'snapshots.disabled': { exit: 1, meaning: 'The configuration turns snapshots off' },
  'pool.full': { exit: 1, meaning: 'A retention limit refuses one more snapshot' },
  'operation.none': { exit: 1, meaning: 'There is nothing to undo, to redo or to take back' },
  'run.inside': { exit: 1, meaning: 'A process of a run may not do this to the history that protects it' },
  'backend.failed': { exit: 1, meaning: 'The filesystem refused to make, read or delete a snapshot of its own' },
  'archive.unsafe': {
    exit: 1,
    meaning: 'An archive is none, is damaged, or contains something that must not be extracted',
  },
  usage: { exit: 2, meaning: 'The command line, or the request, is wrong' },
  'config.invalid': { exit: 2, meaning: 'A configuration file or variable is wrong' },
  'path.outside': { exit: 2, meaning: 'A path lies outside the target' },
  'name.invalid': { exit: 2, meaning: 'A tag or label cannot have this name' },
  incomplete: { exit: 3, meaning: 'Done, but not everything: the message lists what was left alone' },
  'timeline.none': { exit: 10, meaning: 'No timeline protects this directory' },
  busy: { exit: 11, meaning: 'Another process holds the lock' },
  'snapshot.unknown': { exit: 12, meaning: 'No such snapshot' },
  'snapshot.ambiguous': { exit: 12, meaning: 'The name fits several snapshots or runs, or is too short for an id' },
  'path.unknown': { exit: 12, meaning: 'No snapshot knows this path' },
  'tag.unknown': { exit: 12, meaning: 'No such tag' },
  'run.unknown': { exit: 12, meaning: 'No such run' },
  'process.unknown': { exit: 12, meaning: 'No process of a run of this target' },
  unsupported: { exit: 13, meaning: 'This machine or build cannot do it' },
  'store.damaged': { exit: 14, meaning: 'The store has lost or damaged data' },
  'store.format': { exit: 14, meaning: 'The store has a format that this version does not know' },
  'bundle.damaged': { exit: 14, meaning: 'A bundle is none, or is damaged' },
  'command.failed-to-start': { exit: 125, meaning: 'The command was not started' },
  'command.not-executable': { exit: 126, meaning: 'The command cannot be executed' },
  'command.not-found': { exit: 127, meaning: 'The command was not found' },
  bug: { exit: 70, meaning: 'A defect of Savepoint itself' },
  cancelled: { exit: 130, meaning: 'Cancelled by the user' },
} as const

export type ErrorCode = keyof typeof errorCatalogue

export interface ErrorDetails {
  /** The next step for the person who reads it. */
  hint?: string
  /** Machine-readable facts, shown by `--json`. */
  data?: Record<string, unknown>
  cause?: unknown
}

export class SavepointError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly data: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'SavepointError'
    this.code = code
    this.hint = details.hint
    this.data = details.data
  }

  get exitCode(): number {
    return errorCatalogue[this.code].exit
  }
}

/** Stopped by the user before anything was changed. */
export const cancelled = (): SavepointError => new SavepointError('cancelled', 'Cancelled: nothing was changed')

export const isDamage = (error: unknown): error is SavepointError =>
  error instanceof SavepointError && error.code === 'store.damaged'

/** The errno name of a failed system call ("ENOENT"), also of one inside SQLite; undefined when `error` is neither. */
export function errnoOf(error: unknown): string | undefined {
  const { code, errno, errcode, message } = (error ?? {}) as Record<string, unknown>
  if (typeof errcode === 'number') return sqliteErrnos[errcode] ?? sqliteErrnos[errcode & PLAIN_CODE]
  // `rmSync` names only the commonest ones: of the others it has an empty code, and the words of the system.
  if (code === '') return told.find(([said]) => said.test(String(message)))?.[1] ?? 'EIO'
  if (/^(UNKNOWN|Unknown system error .*)$/.test(String(code)) && typeof errno === 'number')
    return unnamed[-errno] ?? 'EIO'
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}

const told: [RegExp, string][] = [
  [/Read-only file system/, 'EROFS'],
  [/No space left/, 'ENOSPC'],
  [/quota exceeded/, 'EDQUOT'],
]

/** What Node calls unknown, in one of two ways, because libuv has no name for it: a quota that is used up, a server that forgot a file. */
const unnamed: Record<number, string> = Object.fromEntries(
  Object.entries(constants.errno).map(([name, errno]) => [errno, name]),
)

/** What a system call said, for people; undefined when `error` is none. */
export function errnoWords(error: unknown): string | undefined {
  const code = errnoOf(error)
  return code && (words[code] ?? (error as Error).message)
}

/** What is said of any error in the middle of a sentence: without the names of calls. */
export const wordsOf = (error: unknown): string => errnoWords(error) ?? (error as Error).message

const words: Record<string, string> = {
  EACCES: 'permission denied',
  EBUSY: 'it is in use',
  EDQUOT: 'the quota is used up',
  EEXIST: 'something else is there',
  EINVAL: 'this name is not possible there',
  EISDIR: 'it is a directory',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'there is no such file or directory',
  ENOTDIR: 'it is not a directory, or lies below something that is none',
  EPERM: 'it is not permitted there',
  EIO: 'the disk has failed, or is gone',
  ENOTCONN: 'the process that serves its filesystem is gone',
  ESTALE: 'the server of its filesystem has lost it',
  EROFS: 'the filesystem is read-only',
}

/**
 * SQLite's extended codes have the plain one in their low byte. 4874: no room for the index of the write-ahead log. 4618: that
 * cannot be begun; on btrfs for want of room, elsewhere because its disk has become read-only.
 */
const PLAIN_CODE = 0xff
const sqliteErrnos: Record<number, string> = {
  5: 'EBUSY',
  8: 'EROFS',
  10: 'EIO',
  13: 'ENOSPC',
  14: 'EACCES',
  4618: 'EACCES',
  4874: 'ENOSPC',
}

export const isNoRoom = (error: unknown): boolean => /^(ENOSPC|EDQUOT)$/.test(errnoOf(error) ?? '')

/** What has no room, to complete "Cannot …: ". */
export const fullWords = (error: unknown): string =>
  errnoOf(error) === 'EDQUOT' ? 'the quota is used up' : 'the disk is full'

/** The same as `isNoRoom`, explained or not. */
export const isDiskFull = (error: unknown): boolean =>
  isNoRoom(error) || (error instanceof SavepointError && error.code === 'disk.full')

/** A place that can be read but not written: a full disk, a filesystem mounted read-only, a directory of somebody else. */
export const isUnwritable = (error: unknown): boolean =>
  isNoRoom(error) || /^(EROFS|EACCES|EPERM)$/.test(errnoOf(error) ?? '')

/** Nothing on it can be read or written until it is mounted again. */
export const isDiskGone = (error: unknown): boolean => /^(EIO|ENOTCONN|ESTALE)$/.test(errnoOf(error) ?? '')
