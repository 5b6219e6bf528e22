/** A tree that is changed step by step: read as far as somebody asks, written where something changed. */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { nameOf, parentOf, type Raw } from '../model/raw-path.ts'
import type { Store } from './store.ts'
import type { StoreWriter } from './store-writer.ts'
import { encodeTree } from './tree-codec.ts'

export class EditableTree {
  private readonly store: Store
  private readonly root: Branch

  constructor(store: Store, tree: Id) {
    this.store = store
    this.root = { tree, children: undefined }
  }

  /** What is there; an `unknown` entry above it answers for everything below it. */
  get(path: Raw): Branch | undefined {
    let branch: Branch | undefined = this.root
    for (const name of path.split('/')) {
      if (branch.entry?.kind === 'unknown') return branch
      branch = this.childrenOf(branch)?.get(name)
      if (!branch) return undefined
    }
    return branch
  }

  /** Whether there is a directory to put it in. */
  put(path: Raw, branch: Branch): boolean {
    const above = parentOf(path) === '' ? this.root : this.get(parentOf(path))
    const siblings = above && this.childrenOf(above)
    siblings?.set(nameOf(path), branch)
    return siblings !== undefined
  }

  remove(path: Raw): void {
    const above = parentOf(path) === '' ? this.root : this.get(parentOf(path))
    if (above) this.childrenOf(above)?.delete(nameOf(path))
  }

  /** All that has been read or put, with their paths. */
  *loaded(): Generator<[Raw, Branch]> {
    const open: [Raw, Branch][] = [['', this.root]]
    for (let at = open.pop(); at; at = open.pop()) {
      const [path, { children }] = at
      for (const [name, branch] of children ?? []) open.push([path === '' ? name : `${path}/${name}`, branch])
      if (path !== '') yield at
    }
  }

  write(writer: StoreWriter): Id {
    return runDeep(write(writer, this.root))
  }

  private childrenOf(branch: Branch): Map<Raw, Branch> | undefined {
    if (branch.entry && branch.entry.kind !== 'dir') return undefined
    branch.children ??= new Map(
      (branch.tree === undefined ? [] : this.store.tree(branch.tree)).map(entry => [entry.name, branchOf(entry)]),
    )
    return branch.children
  }
}

/** One entry, with what is in it. */
export interface Branch {
  /** None of the root. */
  entry?: Entry
  /** What it held when it was read. */
  tree: Id | undefined
  children: Map<Raw, Branch> | undefined
}

/** `entry`: of a directory with its content, or one with nothing in it. */
export const branchOf = (entry: Entry): Branch => ({
  entry,
  tree: entry.kind === 'dir' && entry.content !== '' ? entry.content : undefined,
  children: undefined,
})

function* write(writer: StoreWriter, { tree, children }: Branch): Deep<Id> {
  if (!children) return tree ?? writer.put(encodeTree([]))
  const entries: Entry[] = []
  for (const [name, branch] of children) {
    const entry = branch.entry!
    const content = entry.kind === 'dir' ? yield* call(write(writer, branch)) : entry.content
    entries.push({ ...entry, name, content })
  }
  return writer.put(encodeTree(entries.sort((a, b) => (a.name < b.name ? -1 : 1))))
}
