/**
 * One writing session. Objects are claimed (so that nobody stores one twice), their blocks appended, and `commit` makes
 * them durable in this order: pack bytes fsynced, then the index transaction. Before `commit` nothing is visible; after
 * a crash there are at most unreferenced bytes. `commit` may be called many times.
 */
import { setImmediate } from 'node:timers/promises'
import type { Id } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import { BlockBuilder } from './block-builder.ts'
import { type BlockNames, NameList } from './block-names.ts'
import { failpoint } from './failpoint.ts'
import type { FileLock } from './file-lock.ts'
import { forgetDamage, knownDamage } from './known-damage.ts'
import type { Location } from './object-index.ts'
import { blockNames, NAME_BYTES, OBJECT, type ObjectKind, TREE_BLOCK_BYTES } from './pack-format.ts'
import { PackWriter } from './pack-writer.ts'
import type { Store } from './store.ts'

/** Pending index rows are flushed beyond this many, so that memory stays bounded. */
const MAX_PENDING = 16_000
/** So many rows go into the index at a time while others work. */
const SLICE = 1500
/** From here on it is worth beginning before the commit. */
const MIN_EARLY = 2000
/** With a disk that does not keep up, so many more may wait before the work waits, too. */
const MAX_WAITING = 20 * MAX_PENDING
/** So much is appended before whoever wants to know is told. */
const GROWTH_BYTES = 8 * 1024 * 1024

/** Blocks that are appended but not in the index, of which only the names are kept, and how long their packs are. */
interface Appended {
  blocks: BlockNames[]
  packs: { pack: number; bytes: number }[]
}

export class StoreWriter {
  /** Whether everything but trees is thrown away. */
  readonly discards: boolean = false
  /** Whether there was something in that which the store does not have. */
  hasDiscarded = false
  private readonly store: Store
  private readonly lock: FileLock
  private readonly builder = new BlockBuilder(TREE_BLOCK_BYTES)
  private readonly claimed = new Set<Id>()
  private pending: Appended['blocks'] = []
  private pendingObjects = 0
  /** What is being made durable beside the work. */
  private syncing: Appended | undefined
  private failure: Error | undefined
  /** Whether the index has rows that a power cut could still take away: only a commit counts on them. */
  private hasLooseRows = false
  private readonly pendingClones: [Id, number][] = []
  private readonly writers: PackWriter[] = []
  private appended = 0
  private told = 0
  /** Is told now and then that the store grows; what it throws ends the work. */
  onGrowth: () => void = () => {}
  readonly lostPacks: ReadonlySet<number>
  private readonly knownDamage: ReadonlySet<Id>
  /** Set when damage was met: then what is stored counts only after a look at it. */
  private readonly doubts: boolean
  private readonly damaged = new Map<string, boolean>()
  /** Saves a look-up per file in the very first capture: what this session stores is in `claimed`. */
  private readonly wasEmpty: boolean

  constructor(store: Store, lock: FileLock, doubts = false) {
    this.store = store
    this.lock = lock
    this.doubts = doubts
    this.wasEmpty = store.index.isEmpty()
    this.lostPacks = store.lostPacks()
    this.knownDamage = knownDamage(store.index)
  }

  /** Bytes appended so far, compressed. */
  get newBytes(): number {
    return this.appended
  }

  /** True when the caller must store this object now; false when it is stored or somebody is about to. */
  claim(id: Id): boolean {
    if (this.claimed.has(id) || (!this.wasEmpty && this.isStored(id))) return false
    this.claimed.add(id)
    return true
  }

  /** What lies in a pack that is gone, or is damaged, is stored again: the store heals with what is still there. */
  isStored(id: Id): boolean {
    const location = this.store.index.find(id)
    if (location === undefined || this.lostPacks.has(location.pack) || this.knownDamage.has(id)) return false
    return !this.doubts || location.kind === OBJECT.clone || !this.isDamaged(location)
  }

  private isDamaged({ pack, block }: Location): boolean {
    const key = `${pack}:${block}`
    const known = this.damaged.get(key)
    if (known !== undefined) return known
    const isDamaged = !this.store.packs.isIntact(pack, block)
    this.damaged.set(key, isDamaged)
    return isDamaged
  }

  /** Stores bytes under their own hash. */
  put(bytes: Uint8Array): Id {
    const id = hashBytes(bytes)
    this.putAs(id, OBJECT.data, bytes)
    return id
  }

  /** Stores bytes under an id that the caller vouches for (recipes are stored under the id of the whole file). */
  putAs(id: Id, kind: ObjectKind, bytes: Uint8Array): void {
    if (this.claim(id)) this.putClaimed(id, kind, bytes)
  }

  /** The same for an id that was claimed before. */
  putClaimed(id: Id, kind: ObjectKind, bytes: Uint8Array): void {
    const block = this.builder.add(id, kind, bytes)
    if (block) this.addBlock(block)
  }

  /** Appends a block that a worker compressed; its objects were claimed before. */
  addBlock(block: Buffer): void {
    const writer = this.currentPack()
    const at = writer.append(block)
    this.appended += block.length
    if (this.appended - this.told > GROWTH_BYTES) {
      this.told = this.appended
      this.onGrowth()
    }
    const names = blockNames(block)
    this.pending.push({ pack: writer.pack, block: at, names })
    this.pendingObjects += names.length / NAME_BYTES
    if (this.pendingObjects > MAX_WAITING) this.flush()
    else if (this.pendingObjects > MAX_PENDING && !this.syncing) this.flushBeside()
  }

  /** Registers a reflink clone that already lies durably under its final name. */
  addClone(id: Id, length: number): void {
    this.pendingClones.push([id, length])
  }

  /** A commit is near: if there is much to do for it, that begins now, while this thread waits for others. */
  prepareCommit(): void {
    if (this.pendingObjects > MIN_EARLY && !this.syncing) this.flushBeside()
  }

  /** Everything added so far is durable and findable when this returns. */
  commit(): void {
    const block = this.builder.finish()
    if (block) this.addBlock(block)
    this.flush()
  }

  /** The same while the work goes on, but for the index's own durability. A failure is told by the next call. */
  private flushBeside(): void {
    this.throwFailure()
    failpoint('store:before-sync')
    const appended = { blocks: this.pending, packs: this.packSizes() }
    this.syncing = appended
    this.pending = []
    this.pendingObjects = 0
    Promise.all(this.writers.map(writer => writer.syncBeside()))
      .then(() => this.addBeside(appended))
      .catch(error => {
        this.failure ??= error
      })
  }

  /** In slices: whoever waits for this thread meanwhile does not wait for all of it. A commit may be faster. */
  private async addBeside(appended: Appended): Promise<void> {
    const { index } = this.store
    const names = new NameList(appended.blocks)
    for (let at = 0; at < names.length && this.syncing === appended; at += SLICE) {
      index.looseTransaction(() => {
        failpoint('store:before-index')
        if (at === 0) this.setPackSizes(appended)
        index.addNames(names, at, Math.min(at + SLICE, names.length))
      })
      this.hasLooseRows = true
      await setImmediate()
    }
    if (this.syncing === appended) this.syncing = undefined
  }

  private flush(): void {
    this.throwFailure()
    const isIdle = this.pending.length === 0 && this.pendingClones.length === 0
    if (isIdle && !this.syncing && !this.hasLooseRows) return
    failpoint('store:before-sync')
    for (const writer of this.writers) writer.sync()
    this.store.index.transaction(() => {
      this.addToIndex({ blocks: [...(this.syncing?.blocks ?? []), ...this.pending], packs: this.packSizes() })
      for (const [id, length] of this.pendingClones) {
        this.store.index.add(id, { pack: 0, block: 0, offset: 0, length, kind: OBJECT.clone })
        forgetDamage(this.store.index, id)
      }
    })
    this.syncing = undefined
    this.pending = []
    this.pendingObjects = 0
    this.pendingClones.length = 0
    if (this.hasLooseRows) this.store.index.shrinkLog()
    this.hasLooseRows = false
    failpoint('store:after-index')
  }

  private packSizes(): Appended['packs'] {
    return this.writers.map(({ pack, bytes }) => ({ pack, bytes }))
  }

  private addToIndex(appended: Appended): void {
    failpoint('store:before-index')
    this.store.index.addBlocks(appended.blocks)
    this.setPackSizes(appended)
  }

  private setPackSizes({ packs }: Appended): void {
    for (const { pack, bytes } of packs) this.store.index.setPackBytes(pack, bytes)
  }

  private throwFailure(): void {
    if (this.failure) throw this.failure
  }

  private currentPack(): PackWriter {
    const last = this.writers.at(-1)
    if (last && !last.isFull) return last
    const writer = PackWriter.open(this.store.packDirectory, this.store.index, last === undefined)
    this.writers.push(writer)
    return writer
  }

  /** Ends the session. What was not committed is forgotten and its bytes are cut off. */
  close(): void {
    for (const writer of this.writers) writer.close(this.store.index)
    this.writers.length = 0
    this.syncing = undefined
    // Of a large tree, tens of megabytes, which whoever keeps a finished session would keep.
    this.claimed.clear()
    this.lock.release()
  }
}
