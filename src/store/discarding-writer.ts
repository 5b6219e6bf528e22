/**
 * Takes what a capture gives and keeps only its trees, in memory: for looking at the live state, which needs no room and
 * writes nothing. The trees can be read from the store as long as it is open.
 */
import type { Id } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import type { Store } from './store.ts'
import { StoreWriter } from './store-writer.ts'
import { decodeTree } from './tree-codec.ts'

export class DiscardingWriter extends StoreWriter {
  override readonly discards = true
  private readonly target: Store

  constructor(store: Store) {
    const none = () => {}
    super(store, { release: none, [Symbol.dispose]: none })
    this.target = store
  }

  override claim(id: Id): boolean {
    this.hasDiscarded ||= !this.isStored(id)
    return false
  }

  /** Only trees are put; contents come through `claim`, which wants none of them. */
  override put(bytes: Uint8Array): Id {
    const id = hashBytes(bytes)
    this.target.keepTree(id, decodeTree(Buffer.from(bytes)))
    return id
  }

  override putClaimed(): void {}
  override addBlock(): void {}
  override addClone(): void {}
  override commit(): void {}
}
