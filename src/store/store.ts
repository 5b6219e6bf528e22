/**
 * The content-addressed store: objects in packs, found through the index. It owns the directory `store/` and nothing
 * else; timelines say which objects are alive. Several processes may read and write it at once: each writer appends to a
 * pack of its own, and `gc.lock` keeps collection away from captures (shared while writing, exclusive while collecting).
 */
import { existsSync, type PathLike, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { hashBytes, idToHex } from '../model/id.ts'
import { writeDurably } from './durable.ts'
import { type FileLock, type LockWait, lockFile } from './file-lock.ts'
import { knownDamage, noting } from './known-damage.ts'
import { makeDirs } from './make-dirs.ts'
import { type Location, ObjectIndex } from './object-index.ts'
import { OBJECT } from './pack-format.ts'
import { PackReader } from './pack-reader.ts'
import { decodeRecipe, type RecipeItem, wrongContent } from './recipe.ts'
import { StoreWriter } from './store-writer.ts'
import { decodeEntries, decodeTree, EMPTY_TREE, treeLength } from './tree-codec.ts'

const STORE_FORMAT = 1
const TREE_CACHE_ENTRIES = 200_000
/** A directory with more entries than this is not held to be gone through once. */
const WIDE_ENTRIES = 10_000
/** How long a reader or a writer waits for a collection to end. */
export const GC_LOCK_WAIT_MS = 60_000

/** Where the bytes of a file's content are. */
export type ContentSource =
  | { kind: 'object'; location: Location }
  | { kind: 'recipe'; items: RecipeItem[] }
  | { kind: 'clone'; file: PathLike }

export class Store {
  readonly directory: string
  readonly index: ObjectIndex
  readonly packs: PackReader
  private readonly packNames = new Map<number, string>()
  private readonly trees = new Map<Id, Entry[]>()
  private cachedEntries = 0
  /** Trees that are not on disk: see DiscardingWriter. */
  private readonly kept = new Map<Id, Entry[]>()
  /** Contents that are not in the store, and in which file of somebody else they are. */
  private readonly lent = new Map<Id, Buffer>()

  private constructor(directory: string) {
    this.directory = directory
    this.index = new ObjectIndex(join(directory, 'index.sqlite'))
    this.packs = new PackReader(this.packDirectory, pack => this.packName(pack))
  }

  /** Opens the store in `directory` and makes it when it does not exist. */
  static open(directory: string): Store {
    Store.prepare(directory)
    return new Store(directory)
  }

  /** Makes it when it does not exist. Throws when its format is not known: then nothing in it may be touched. */
  static prepare(directory: string): void {
    const formatFile = join(directory, 'format.json')
    if (!existsSync(formatFile)) {
      Store.makeParts(directory)
      writeDurably(formatFile, `${JSON.stringify({ format: STORE_FORMAT })}\n`)
    }
    checkFormat(formatFile)
  }

  static makeParts(directory: string): void {
    for (const part of ['packs', 'clones']) makeDirs(join(directory, part), 0o700)
  }

  get packDirectory(): string {
    return join(this.directory, 'packs')
  }

  get gcLockFile(): string {
    return join(this.directory, 'gc.lock')
  }

  cloneFile(id: Id): string {
    return join(this.directory, 'clones', idToHex(id))
  }

  has(id: Id): boolean {
    return this.index.find(id) !== undefined
  }

  locate(id: Id): Location {
    const location = this.index.find(id)
    if (location) return location
    throw new SavepointError('store.damaged', `Cannot find object ${idToHex(id).slice(0, 16)} in the store`, {
      hint: 'Run `savepoint verify` to see which snapshots and files are affected',
      data: { object: idToHex(id) },
    })
  }

  /** The bytes of one object, checked against its id: the index may point elsewhere. Shared with a cache: not to be written to. */
  read(id: Id): Buffer {
    return noting(this, [id], () => {
      const bytes = this.readAt(this.locate(id))
      if (hashBytes(bytes) !== id) throw wrongContent()
      return bytes
    })
  }

  /** Not checked: for recipes, whose id is that of the whole, and for chunks of which the caller checks the whole. */
  readAt(location: Location): Buffer {
    return this.packs.block(location.pack, location.block).subarray(location.offset, location.offset + location.length)
  }

  /** The entries of a tree, sorted by name. Shared with a cache: not to be changed. */
  tree(id: Id): Entry[] {
    return this.cachedTree(id) ?? this.remember(id, decodeTree(this.read(id)))
  }

  /** The same to go through once: a wide directory is decoded on the way and not held. */
  entries(id: Id): Iterable<Entry> {
    const cached = this.cachedTree(id)
    if (cached) return cached
    const bytes = this.read(id)
    return treeLength(bytes) > WIDE_ENTRIES ? decodeEntries(bytes) : this.remember(id, decodeTree(bytes))
  }

  /** Its entries need not be decoded. */
  isAtHand(id: Id): boolean {
    return this.cachedTree(id) !== undefined
  }

  private cachedTree(id: Id): Entry[] | undefined {
    return this.trees.get(id) ?? this.kept.get(id) ?? (id === EMPTY_TREE ? [] : undefined)
  }

  /** For who has the entries of a tree at hand that will be asked for soon. They are not to be changed any more. */
  expect(id: Id, entries: Entry[]): void {
    if (entries.length <= WIDE_ENTRIES) this.remember(id, entries)
  }

  private remember(id: Id, entries: Entry[]): Entry[] {
    if (this.cachedEntries + entries.length > TREE_CACHE_ENTRIES) {
      this.trees.clear()
      this.cachedEntries = 0
    }
    this.trees.set(id, entries)
    this.cachedEntries += entries.length
    return entries
  }

  keepTree(id: Id, entries: Entry[]): void {
    this.kept.set(id, entries)
  }

  /** Throws where a tree is at hand that the store cannot give back. */
  requireKept(id: Id): void {
    if (this.kept.has(id)) this.read(id)
  }

  /** Throws where the index does not find a content, or a chunk of it. */
  requireFound(id: Id): void {
    const source = this.locate(id).kind === OBJECT.recipe ? this.contentSource(id) : undefined
    if (source?.kind === 'recipe') for (const item of source.items) if ('chunk' in item) this.locate(item.chunk)
  }

  forgetKept(): void {
    this.kept.clear()
  }

  /** Whoever reads it checks it, as he does a clone. */
  lend(id: Id, file: Buffer): void {
    this.lent.set(id, file)
  }

  get isLending(): boolean {
    return this.lent.size > 0
  }

  takeBackLent(): void {
    this.lent.clear()
  }

  contentSource(id: Id): ContentSource {
    const file = this.lent.get(id)
    if (file !== undefined && !this.has(id)) return { kind: 'clone', file }
    const location = this.locate(id)
    if (location.kind === OBJECT.clone) return { kind: 'clone', file: this.cloneFile(id) }
    if (location.kind === OBJECT.recipe) return { kind: 'recipe', items: decodeRecipe(this.readAt(location)) }
    return { kind: 'object', location }
  }

  /** Packs whose files are missing or cut off: what the index says about them does not hold. */
  lostPacks(): Set<number> {
    return new Set(
      this.index
        .packs()
        .filter(({ name, bytes }) => bytes > 0 && fileBytes(join(this.packDirectory, name)) < bytes)
        .map(pack => pack.id),
    )
  }

  /** Files of it are missing or cut off, or somebody has met damage in them. */
  hasKnownDamage(): boolean {
    const hasLostClones = () => this.index.cloneIds().some(id => !existsSync(this.cloneFile(id)))
    return this.lostPacks().size > 0 || hasLostClones() || knownDamage(this.index).size > 0
  }

  /**
   * Starts writing; close it. Collection waits meanwhile; `signal` ends the wait for one that runs. With `doubts`, what is
   * in the store but cannot be read is stored again.
   */
  async writer(signal?: AbortSignal, doubts = false): Promise<StoreWriter> {
    const lock = await this.lock('shared', 'write to the store', { waitMs: GC_LOCK_WAIT_MS, signal })
    try {
      return new StoreWriter(this, lock, doubts)
    } catch (error) {
      lock.release()
      throw error
    }
  }

  /** Writes while the caller holds the store's lock exclusively. */
  exclusiveWriter(): StoreWriter {
    const none = () => {}
    return new StoreWriter(this, { release: none, [Symbol.dispose]: none })
  }

  lock(mode: 'shared' | 'exclusive', purpose: string, wait: LockWait): Promise<FileLock> {
    return lockFile(this.gcLockFile, mode, purpose, wait)
  }

  /** Forgets descriptors and cached blocks, after packs were rewritten. */
  refresh(): void {
    this.packs.close()
    this.packNames.clear()
    this.trees.clear()
    this.cachedEntries = 0
  }

  private packName(pack: number): string | undefined {
    let name = this.packNames.get(pack)
    if (name === undefined) {
      name = this.index.pack(pack)?.name
      if (name !== undefined) this.packNames.set(pack, name)
    }
    return name
  }

  close(): void {
    this.packs.close()
    this.index.close()
  }
}

const fileBytes = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

function checkFormat(file: string): void {
  const damaged = (why: string, cause?: unknown) =>
    new SavepointError('store.damaged', `Cannot read ${file}: ${why}`, {
      hint: `If the packs beside it are intact, write {"format":${STORE_FORMAT}} into it and run \`savepoint verify\``,
      cause,
    })
  let content: { format?: unknown } | null
  try {
    content = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw damaged((cause as Error).message, cause)
  }
  const format = content?.format
  if (format === STORE_FORMAT) return
  if (typeof format !== 'number') throw damaged('it does not say which format the store has')
  throw new SavepointError(
    'store.format',
    `Cannot open the store: its format is ${format}, this version knows ${STORE_FORMAT}`,
    {
      hint: 'Use the version of Savepoint that made it, or a newer one',
    },
  )
}
