/** Everything that a restore must bring back: the image of a tree, its extended attributes, and which files have holes. */
import { spawnSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { hasXattrs } from './machine.ts'
import { imageOf } from './tree-image.ts'

/** Smaller files may lie in their inode or in one block. */
const SPARSE_FROM_BYTES = 64 * 1024
const BLOCK_BYTES = 512

export function fullImageOf(root: string): Map<string, string> {
  const image = imageOf(root)
  const xattrs = hasXattrs ? xattrsBelow(root) : new Map<string, string>()
  for (const [path, line] of image) {
    const extra = [xattrs.get(path), hasHoles(root, path) ? 'sparse' : undefined].filter(Boolean)
    if (extra.length > 0) image.set(path, [line, ...extra].join(' '))
  }
  return image
}

function hasHoles(root: string, path: string): boolean {
  const stat = lstatSync(Buffer.from(`${Buffer.from(root).toString('latin1')}/${path}`, 'latin1'))
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
