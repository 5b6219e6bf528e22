/**
 * Things that may happen to a tree: the same language builds one and mutates it. An operation that cannot be carried out
 * (its path is a directory, its parent does not exist) does nothing, so that any list of operations is valid. Nor does
 * one whose path leads out of the tree through a link: what is outside is not the test's.
 */
import { spawnSync } from 'node:child_process'
import { createCipheriv } from 'node:crypto'
import * as fs from 'node:fs'
import { isRoot } from './machine.ts'

/** Paths are latin1, relative to the root of the tree. */
export type TreeOp =
  | { op: 'file'; path: string; size: number; seed: number; mode: number }
  | { op: 'sparse'; path: string; size: number; seed: number }
  | { op: 'dir'; path: string; mode: number }
  | { op: 'link'; path: string; target: string }
  | { op: 'hard'; path: string; from: string }
  | { op: 'fifo'; path: string }
  | { op: 'xattr'; path: string; name: string; value: string }
  | { op: 'chmod'; path: string; mode: number }
  | { op: 'append'; path: string; seed: number }
  /** Same size, other bytes, and the mtime put back to the nanosecond. */
  | { op: 'disguise'; path: string; seed: number }
  | { op: 'touch'; path: string; seconds: number; nanoseconds: number }
  | { op: 'rename'; path: string; to: string }
  | { op: 'remove'; path: string }

export function applyOps(root: string, ops: readonly TreeOp[]): void {
  for (const op of ops) {
    try {
      applyOp(root, op)
    } catch (error) {
      if (!/^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
}

function applyOp(root: string, op: TreeOp): unknown {
  const at = (path: string) => within(root, Buffer.from(path, 'latin1'))
  const path = at(op.path)
  const absent = () => {
    if (fs.lstatSync(path, { throwIfNoEntry: false })) throw Object.assign(new Error(op.path), { code: 'EEXIST' })
  }
  switch (op.op) {
    case 'file':
      if (fs.lstatSync(path, { throwIfNoEntry: false })) fs.unlinkSync(path)
      fs.writeFileSync(path, noise(op.size, op.seed), { flag: 'wx' })
      return fs.chmodSync(path, op.mode)
    case 'sparse':
      return writeSparse(path, op.size, op.seed)
    case 'dir':
      absent()
      fs.mkdirSync(path)
      return fs.chmodSync(path, op.mode)
    case 'link':
      return fs.symlinkSync(Buffer.from(op.target, 'latin1'), path)
    case 'hard':
      return fs.linkSync(at(op.from), path)
    case 'fifo':
      absent()
      return run('mkfifo', [], path)
    case 'xattr':
      return run('setfattr', ['-h', '-n', `user.${op.name}`, '-v', op.value], path)
    case 'chmod':
      if (fs.lstatSync(path).isSymbolicLink()) return
      // Without root, a directory that cannot be listed is not captured, and its image cannot be taken.
      return fs.chmodSync(path, isRoot || !fs.lstatSync(path).isDirectory() ? op.mode : op.mode | 0o500)
    case 'append':
      if (!fs.lstatSync(path).isFile()) return
      return fs.appendFileSync(path, noise(10, op.seed))
    case 'disguise':
      return disguise(path, op.seed)
    case 'touch':
      fs.lstatSync(path)
      return setMtime(path, `@${op.seconds}.${String(op.nanoseconds).padStart(9, '0')}`)
    case 'rename':
      return fs.renameSync(path, at(op.to))
    case 'remove':
      return fs.rmSync(path, { recursive: true })
  }
}

/** The path itself is never followed below, so only the directories above it can lead out. */
function within(root: string, path: Buffer): Buffer {
  const full = Buffer.concat([Buffer.from(`${root}/`), path])
  const parent = fs.realpathSync.native(full.subarray(0, full.lastIndexOf('/')), 'buffer')
  const top = fs.realpathSync.native(Buffer.from(root), 'buffer')
  const isWithin =
    parent.equals(top) || parent.subarray(0, top.length + 1).equals(Buffer.concat([top, Buffer.from('/')]))
  if (!isWithin) throw Object.assign(new Error('leads out of the tree'), { code: 'EXDEV' })
  return full
}

/** Reproducible bytes that do not compress and do not repeat. */
export function noise(size: number, seed: number): Buffer {
  const key = Buffer.alloc(16)
  key.writeUInt32LE(seed >>> 0)
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size))
}

/** Data at its start and near its end, a hole between. */
function writeSparse(path: Buffer, size: number, seed: number): void {
  const fd = fs.openSync(path, 'wx')
  try {
    fs.writeSync(fd, noise(100, seed), 0, 100, 0)
    fs.ftruncateSync(fd, size)
    fs.writeSync(fd, noise(100, seed + 1), 0, 100, size - 5000)
  } finally {
    fs.closeSync(fd)
  }
}

function disguise(path: Buffer, seed: number): void {
  const { size, mtimeNs, mode } = fs.lstatSync(path, { bigint: true })
  if ((mode & 0o170000n) !== 0o100000n || size === 0n) return
  const fd = fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_NOFOLLOW)
  fs.writeSync(fd, noise(Math.min(Number(size), 64), seed), 0, undefined, 0)
  fs.closeSync(fd)
  setMtime(path, `@${mtimeNs / 1_000_000_000n}.${String(mtimeNs % 1_000_000_000n).padStart(9, '0')}`)
}

/** `when`: @SECONDS.NANOSECONDS; node:fs has no nanoseconds. */
const setMtime = (path: Buffer, when: string): void => run('touch', ['-h', '-m', '-d', when], path)

/** Through xargs, because arguments of a process started by node are text and these paths are bytes. */
function run(command: string, args: string[], path: Buffer): void {
  spawnSync('xargs', ['-0', command, ...args, '--'], { input: path })
}

/** As a disk does that forgets a bit. */
export function flipIn(file: string): void {
  const bytes = fs.readFileSync(file)
  bytes[bytes.length >> 1]! ^= 1
  fs.writeFileSync(file, bytes)
}
