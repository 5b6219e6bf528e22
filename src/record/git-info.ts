/** What git knows of the paths of a recording, as it is when the recording has ended. */
import { createHash } from 'node:crypto'
import { belowRoot, readWorkTree, type WorkTree, WorkTreeFinder } from '../files/git-work-tree.ts'
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import { pathText } from './bundle-paths.ts'
import type { Item } from './contents.ts'
import type { GitInfo } from './manifest.ts'
import { isFile, sameState, typeOf } from './states.ts'

const SHA1_HEX = 40

export interface GitFile {
  tree: WorkTree
  /** Relative to the root. */
  path: Raw
  isTracked: boolean
  isIgnored: boolean
  /** The object that HEAD has; undefined: none, or the index already has another one. */
  committed: string | undefined
  /** Whether the index says that the file as it is now is that object. */
  isKnownClean: boolean
  algorithm: 'sha1' | 'sha256'
}

export class GitPaths {
  private readonly finder = new WorkTreeFinder()
  private readonly trees = new Map<Raw, WorkTree>()

  /** Asks git about all of them, once for each repository. */
  async load(all: Iterable<Raw>, env: NodeJS.ProcessEnv): Promise<void> {
    const byRoot = new Map<Raw, Raw[]>()
    for (const path of all) {
      const root = this.finder.rootOf(path)
      if (root === undefined) continue
      const paths = byRoot.get(root)
      const below = belowRoot(root, path)
      if (paths) paths.push(below)
      else byRoot.set(root, [below])
    }
    const trees = await Promise.all([...byRoot].map(([root, paths]) => readWorkTree(root, paths, env)))
    for (const tree of trees) this.trees.set(tree.root, tree)
  }

  get repositories(): WorkTree[] {
    return [...this.trees.values()]
  }

  of(item: Item): GitFile | undefined {
    const root = this.finder.rootOf(item.path)
    const tree = root === undefined ? undefined : this.trees.get(root)
    if (!tree) return undefined
    const path = belowRoot(tree.root, item.path)
    const indexed = tree.tracked.get(path)
    const committed = tree.committed.get(path)
    const isStaged = indexed !== undefined && indexed.oid !== committed
    const isKnownClean =
      indexed !== undefined &&
      !isStaged &&
      isFile(item.after) &&
      indexed.size === item.after.size &&
      indexed.mtimeNs === item.after.mtimeNs
    return {
      tree,
      path,
      isTracked: indexed !== undefined,
      isIgnored: tree.ignored.has(path),
      committed: isStaged ? undefined : committed,
      isKnownClean,
      algorithm: (committed ?? '').length > SHA1_HEX ? 'sha256' : 'sha1',
    }
  }
}

/** `oid`: of its content at the end, as git names it; undefined where that was not read. */
export function gitInfo(item: Item, git: GitFile | undefined, oid: string | undefined): GitInfo | { in_repo: false } {
  if (!git) return { in_repo: false }
  const isClean = git.committed !== undefined && isCommitted(item, git, oid)
  return {
    in_repo: true,
    root: pathText(git.tree.root).text,
    head: git.tree.head ?? null,
    relative_path: pathText(git.path).text,
    tracked: git.isTracked,
    // What a submodule holds is its own affair.
    dirty: git.isTracked && !isClean && !(item.after && typeOf(item.after) === 'directory'),
    ignored: git.isIgnored,
    ...(isClean && git.committed !== undefined && sameState(item.before, item.after) ? { oid: git.committed } : {}),
  }
}

/** Whether what is there at the end is what HEAD has. */
function isCommitted(
  { after }: Item,
  { committed, algorithm, isKnownClean }: GitFile,
  oid: string | undefined,
): boolean {
  if (after?.target !== undefined) return gitOid(algorithm, rawToBytes(after.target)) === committed
  return isFile(after) && (oid === undefined ? isKnownClean : oid === committed)
}

const gitOid = (algorithm: string, bytes: Buffer): string =>
  createHash(algorithm).update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
