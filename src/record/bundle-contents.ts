/** Contents of a bundle, or of the repository that stands for them, as objects of a store. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { Spool } from '../engine/archive-spool.ts'
import { readObject } from '../files/git-work-tree.ts'
import type { Id } from '../model/entry.ts'
import { rawFromText, rawToBytes } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { WHOLE_FILE_BYTES } from '../targets/dir/ingest-read.ts'
import type { Bundle, BundleFile } from './bundle.ts'
import type { State } from './manifest.ts'

export interface ContentOptions {
  bundle: Bundle
  home: string
  store: Store
  writer: StoreWriter
  /** Also what only git has. */
  withGit: boolean
  env: NodeJS.ProcessEnv
}

/** Close it. */
export class BundleContents {
  private readonly options: ContentOptions
  private readonly spool: Spool
  private readonly stored = new Map<string, Id>()

  constructor(options: ContentOptions) {
    this.options = options
    this.spool = new Spool(options.home, options.store, options.writer, true)
  }

  close(): void {
    this.spool.close()
  }

  /** The object; or why there is none. Throws when the bundle is damaged. */
  async store(
    file: BundleFile,
    side: 'before' | 'after',
  ): Promise<Id | { why: 'not-stored' | 'only-in-git' | 'not-in-git' }> {
    const state = file[side]
    if (state.blob === undefined) return this.fromGit(file, state)
    const known = this.stored.get(state.blob)
    if (known !== undefined) return known
    const id = await this.put(state)
    this.stored.set(state.blob, id)
    return id
  }

  private async put(state: State): Promise<Id> {
    const size = state.size ?? 0
    const pieces = this.options.bundle.pieces(state)
    if (size <= WHOLE_FILE_BYTES)
      return this.options.writer.put(Buffer.concat([...pieces].map(piece => Buffer.from(piece))))
    let rest: Buffer = Buffer.alloc(0)
    const read = async (most: number): Promise<Buffer> => {
      if (rest.length === 0) rest = pieces.next().value ?? Buffer.alloc(0)
      const part = rest.subarray(0, most)
      rest = rest.subarray(part.length)
      return part
    }
    const id = await this.spool.store(size, [{ offset: 0, length: size }], read)
    // Its hash is compared behind the last piece.
    pieces.next()
    return id
  }

  private async fromGit(
    { git }: BundleFile,
    state: State,
  ): Promise<Id | { why: 'not-stored' | 'only-in-git' | 'not-in-git' }> {
    if (!git.in_repo || git.oid === undefined || state.sha256 === undefined) return { why: 'not-stored' }
    const root = rawFromText(git.root)
    if (!this.options.withGit) return { why: existsSync(rawToBytes(root)) ? 'only-in-git' : 'not-in-git' }
    const bytes = await readObject(root, git.oid, this.options.env)
    if (!bytes || createHash('sha256').update(bytes).digest('hex') !== state.sha256) return { why: 'not-in-git' }
    return this.options.writer.put(bytes)
  }
}
