/** The text of a configuration file, with everything refused that is not a modest UTF-8 text file. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { errnoOf, errnoWords, isDiskGone, type SavepointError } from '../errors/errors.ts'
import { isWithin } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { invalidFile } from './problem.ts'

const maxFileBytes = 1024 * 1024

/**
 * Undefined when there is no such file. Throws config.invalid when there is one that cannot be read as text.
 * `file`: what to open, where the path is not UTF-8 and `path` only names it for people. `beneath`: it may not be a link that
 * leads out of its directory.
 */
export function readConfigFile(
  path: string,
  file: string | Buffer = path,
  options: { beneath?: boolean } = {},
): string | undefined {
  const bytes = readBytes(path, file, options.beneath === true)
  return bytes && decode(path, bytes)
}

function readBytes(path: string, file: string | Buffer, beneath: boolean): Buffer | undefined {
  let descriptor: number | undefined
  try {
    if (beneath) refuseWayOut(path, file)
    // Without O_NONBLOCK a FIFO of that name would hang us.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!fstatSync(descriptor).isFile()) throw invalidFile(path, [{ what: 'it is not a regular file' }])
    return readAll(path, descriptor)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    if (errno === 'EACCES' && isClosed(file)) throw closedDirectory(dirname(path), error)
    if (errno === 'ENOTDIR' || (errno === 'ENOENT' && !isLink(file))) return undefined
    throw unreadable(path, errno, error)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Reads to the limit rather than to the size that stat gave: the file may be growing. */
function readAll(path: string, descriptor: number): Buffer {
  const expected = Math.min(fstatSync(descriptor).size, maxFileBytes)
  let buffer = Buffer.allocUnsafe(expected + 1)
  let length = 0
  for (;;) {
    const count = readSync(descriptor, buffer, length, buffer.length - length, null)
    if (count === 0) return buffer.subarray(0, length)
    length += count
    if (length > maxFileBytes) {
      throw invalidFile(path, [
        { what: 'it is larger than 1 MiB', fix: 'A configuration has a few lines; is it the right file?' },
      ])
    }
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length, maxFileBytes + 1))
  }
}

/** The directory does not let this user look whether there is such a file. */
function isClosed(file: string | Buffer): boolean {
  try {
    lstatSync(file)
    return false
  } catch (error) {
    return errnoOf(error) === 'EACCES'
  }
}

function closedDirectory(directory: string, cause: unknown): SavepointError {
  const fix = `Give yourself access: chmod u+rwx ${quoteWord(directory)}`
  return invalidFile(
    directory,
    [{ what: 'the directory itself cannot be read: its mode does not permit it', fix }],
    cause,
  )
}

/** A link that leads out would have its file quoted in our errors: whoever wrote the link may not be allowed to read that. */
function refuseWayOut(path: string, file: string | Buffer): void {
  if (!isLink(file)) return
  const real = realpathSync(file, 'latin1')
  const directory = realpathSync(
    Buffer.from(
      Buffer.from(file)
        .toString('latin1')
        .replace(/\/[^/]*$/, '/'),
      'latin1',
    ),
    'latin1',
  )
  if (isWithin(real, directory)) return
  const fix = 'Put the file itself there, or name the other one with SAVEPOINT_CONFIG.'
  throw invalidFile(path, [{ what: 'it is a symbolic link that leads out of the directory', fix }])
}

function isLink(path: string | Buffer): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}

function unreadable(path: string, errno: string, cause: unknown): SavepointError {
  const [what, fix] =
    errno === 'EACCES' || errno === 'EPERM'
      ? ['reading it is not permitted', 'Give yourself read permission, or remove the file.']
      : errno === 'ENOENT'
        ? ['it is a symbolic link to a file that does not exist', 'Correct or remove the link.']
        : isDiskGone(cause)
          ? [errnoWords(cause), 'See what `dmesg` says, and mount its filesystem again.']
          : [`it cannot be read (${errno})`, undefined]
  return invalidFile(path, [{ what: what!, fix }], cause)
}

function decode(path: string, bytes: Buffer): string {
  if (bytes.length >= 2 && ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))) {
    throw invalidFile(path, [{ line: 1, column: 1, what: 'it is UTF-16, not UTF-8', fix: 'Save the file as UTF-8.' }])
  }
  const zero = bytes.indexOf(0)
  if (zero >= 0) {
    const what = 'it holds a zero byte: it is damaged or was written only in part'
    throw invalidFile(path, [{ ...positionOf(bytes, zero), what, fix: 'Write the file again, or remove it.' }])
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    const what = 'it is not valid UTF-8 here'
    throw invalidFile(
      path,
      [{ ...positionOf(bytes, firstInvalid(bytes)), what, fix: 'Save the file as UTF-8.' }],
      cause,
    )
  }
}

/** Where decoding with replacement first differs from the bytes. */
function firstInvalid(bytes: Buffer): number {
  const repaired = Buffer.from(bytes.toString('utf8'))
  let offset = 0
  while (offset < bytes.length && bytes[offset] === repaired[offset]) offset++
  return offset
}

function positionOf(bytes: Buffer, offset: number): { line: number; column: number } {
  const before = bytes.subarray(0, offset).toString('utf8')
  const lastBreak = before.lastIndexOf('\n')
  return { line: before.split('\n').length, column: before.length - lastBreak }
}
