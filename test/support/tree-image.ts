/** What a directory tree looks like, read with node:fs alone, so that our own code does not vouch for itself. */
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

const LARGE_BYTES = 64n * 1024n * 1024n

export interface ImageOptions {
  /**
   * Also inode, ctime and the mtime of directories: equal images then mean that nothing was written at all. The content
   * of large files is not read, since no write leaves ctime as it is.
   */
  untouched?: boolean
  /** Paths relative to the root, as latin1; what is below them is left out, too. */
  skip?: (path: string) => boolean
  /** Permission bits by inode, told instead of those on the disk. */
  modes?: Map<bigint, bigint>
}

/** One line per path (latin1, relative): kind, mode, owner, mtime of files and links, hard links, target, digest. */
export function imageOf(root: string | Buffer, options: ImageOptions = {}): Map<string, string> {
  const image = new Map<string, string>()
  const groups = new Map<bigint, string>()
  const visit = (path: string) => {
    if (options.skip?.(path)) return
    const bytes = bytesOf(root, path)
    const stat = lstatSync(bytes, { bigint: true })
    const mode = options.modes?.get(stat.ino) ?? stat.mode & 0o7777n
    const parts = [kindOf(stat.mode), mode.toString(8), `${stat.uid}:${stat.gid}`]
    if (!stat.isDirectory()) parts.push(`mtime ${stat.mtimeNs}`)
    if (options.untouched) parts.push(`ino ${stat.ino} mtime ${stat.mtimeNs} ctime ${stat.ctimeNs}`)
    const isRead = !options.untouched || stat.size < LARGE_BYTES
    if (stat.isFile()) parts.push(`${stat.size}`, isRead ? digestOf(readFileSync(bytes)) : 'not read')
    if (stat.isFile() && stat.nlink > 1n) {
      if (!groups.has(stat.ino)) groups.set(stat.ino, path)
      parts.push(`${stat.nlink} links, first ${groups.get(stat.ino)}`)
    }
    if (stat.isSymbolicLink()) parts.push(readlinkSync(bytes, 'buffer').toString('latin1'))
    image.set(path, parts.join(' '))
    if (!stat.isDirectory()) return
    for (const child of childrenOf(root, path)) visit(child)
  }
  visit('')
  return image
}

/** `path` as in an image; '' is the root itself. */
export const bytesOf = (root: string | Buffer, path: string): Buffer =>
  Buffer.concat([Buffer.from(root), Buffer.from(path === '' ? '' : `/${path}`, 'latin1')])

/** What lies in the directory `path`, sorted, as paths of an image. */
export function childrenOf(root: string | Buffer, path: string): string[] {
  const names = readdirSync(bytesOf(root, path), 'buffer').map(name => name.toString('latin1'))
  return names.sort().map(name => (path === '' ? name : `${path}/${name}`))
}

/** Paths of two images that differ, with both lines: empty when the trees are equal. */
export function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths]
    .filter(path => before.get(path) !== after.get(path))
    .map(path => `${path}: ${before.get(path) ?? 'absent'} => ${after.get(path) ?? 'absent'}`)
}

const kindOf = (mode: bigint): string =>
  ({ 1: 'fifo', 2: 'char', 4: 'dir', 6: 'block', 8: 'file', 10: 'link', 12: 'socket' })[Number((mode >> 12n) & 15n)] ??
  'other'

const digestOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex').slice(0, 16)
