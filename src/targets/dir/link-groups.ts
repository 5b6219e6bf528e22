/** Finds hard links within a tree. A group is named after its first path, so that equal trees have equal ids. */
import type { Raw } from '../../model/raw-path.ts'
import { linkGroupNumber } from './dir-node.ts'

export class LinkGroups {
  private readonly members = new Map<bigint, { first: Raw; count: number }>()

  get size(): number {
    return this.members.size
  }

  countOf(ino: bigint): number {
    return this.members.get(ino)?.count ?? 0
  }

  add(ino: bigint, path: Raw): void {
    const group = this.members.get(ino)
    if (!group) this.members.set(ino, { first: path, count: 1 })
    else {
      group.count++
      if (path < group.first) group.first = path
    }
  }

  /** 0n when no other link of the file lies in the tree. */
  groupOf(ino: bigint): bigint {
    const group = this.members.get(ino)
    return group && group.count > 1 ? linkGroupNumber(group.first) : 0n
  }
}
