/** Everything that a restore must bring back: the image of a tree, its extended attributes, and which files have holes. */
import { spawnSync } from 'node:child_process'
import { chmodSync, lstatSync } from 'node:fs'
import { hasXattrs, isRoot } from './machine.ts'
import { bytesOf, childrenOf, imageOf } from './tree-image.ts'

/** Smaller files may lie in their inode or in one block. */
const SPARSE_FROM_BYTES = 64 * 1024
const BLOCK_BYTES = 512

/** Also of what its owner, who we are, has closed to everybody: it is opened meanwhile, so its ctime changes. */
export function fullImageOf(root: string): Map<string, string> {
  const closed: Closed[] = []
  try {
    if (!isRoot) openClosed(root, '', closed)
    return imageWithExtras(root, new Map(closed.map(({ inode, mode }) => [inode, mode])))
  } finally {
    // From below, while the directories above still let us in.
    for (const { path, mode } of closed.reverse()) chmodSync(bytesOf(root, path), Number(mode))
  }
}

interface Closed {
  path: string
  inode: bigint
  mode: bigint
}

function openClosed(root: string, path: string, closed: Closed[]): void {
  const stat = lstatSync(bytesOf(root, path), { bigint: true })
  const needed = stat.isDirectory() ? 0o500n : stat.isFile() ? 0o400n : 0n
  if ((stat.mode & needed) !== needed) {
    const mode = stat.mode & 0o7777n
    chmodSync(bytesOf(root, path), Number(mode | needed))
    closed.push({ path, inode: stat.ino, mode })
  }
  if (stat.isDirectory()) for (const child of childrenOf(root, path)) openClosed(root, child, closed)
}

function imageWithExtras(root: string, modes: Map<bigint, bigint>): Map<string, string> {
  const image = imageOf(root, { modes })
  const xattrs = hasXattrs ? xattrsBelow(root) : new Map<string, string>()
  for (const [path, line] of image) {
    const extra = [xattrs.get(path), hasHoles(root, path) ? 'sparse' : undefined].filter(Boolean)
    if (extra.length > 0) image.set(path, [line, ...extra].join(' '))
  }
  return image
}

function hasHoles(root: string, path: string): boolean {
  const stat = lstatSync(bytesOf(root, path))
  return stat.isFile() && stat.size >= SPARSE_FROM_BYTES && stat.blocks * BLOCK_BYTES < stat.size
}

/** By path (latin1, relative). getfattr prints a block per path: "# file: NAME", then NAME=VALUE lines. */
function xattrsBelow(root: string): Map<string, string> {
  const listed = spawnSync('getfattr', ['-RPh', '-d', '-m', '-', '-e', 'hex', '--', '.'], {
    cwd: root,
    maxBuffer: 1 << 28,
  })
  const found = new Map<string, string>()
  for (const block of listed.stdout.toString('latin1').split('\n\n')) {
    const [head, ...lines] = block.trim().split('\n')
    if (!head?.startsWith('# file: ')) continue
    const path = unescapeOctal(head.slice('# file: '.length)).replace(/^\.\/?/, '')
    found.set(path, lines.sort().join(' '))
  }
  return found
}

const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))
