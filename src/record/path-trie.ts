/** Paths of a bundle as a tree of names, below a directory. */
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { BundleFile } from './bundle.ts'

export interface TrieNode {
  name: Raw
  /** undefined: only something below it is in the bundle. */
  file: BundleFile | undefined
  children: Map<Raw, TrieNode>
}

const newNode = (name: Raw): TrieNode => ({ name, file: undefined, children: new Map() })

/** `directory`: absolute; all files lie below it. */
export function trieOf(directory: Raw, files: Iterable<BundleFile>): TrieNode {
  const root = newNode('')
  for (const file of files) {
    let node = root
    for (const name of relativeTo(directory, file.raw).split('/')) {
      if (!node.children.has(name)) node.children.set(name, newNode(name))
      node = node.children.get(name)!
    }
    node.file = file
  }
  return root
}

export const relativeTo = (directory: Raw, path: Raw): Raw => path.slice(directory === '/' ? 1 : directory.length + 1)

/** Whether a path lies below a directory, and is not that itself. */
export const isBelow = (path: Raw, directory: Raw): boolean =>
  path !== directory && isWithin(path, directory === '/' ? '' : directory)

/** In the order that trees have. */
export const sortedChildren = (node: TrieNode): TrieNode[] =>
  [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
