/** Finds the content that a path had before a recording, wherever it is by now, and puts contents into the bundle. */
import { join } from 'node:path'
import { errnoOf, isNoRoom } from '../errors/errors.ts'
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import { type RecordLog, SEEN, type SeenState } from '../tracers/record-log.ts'
import { pathText } from './bundle-paths.ts'
import type { BundleWriter } from './bundle-writer.ts'
import { Content, Unstable } from './content.ts'
import type { SkippedRecord, State } from './manifest.ts'
import { isFile } from './states.ts'

/** A path of the recording, with what became of it. */
export interface Item {
  path: Raw
  /** Of SEEN. */
  as: number
  before: SeenState | undefined
  after: SeenState | undefined
  /** It cannot be looked at any more. */
  unseen: boolean
}

export type SkipReason = 'unreadable' | 'changed-by-others' | 'no-space' | 'unstable' | 'not-saved' | 'unseen'

export type Side = 'before' | 'after'

export class Contents {
  private readonly writer: BundleWriter
  private readonly log: RecordLog
  private readonly spool: string
  /** Files that were moved or made: where they are. */
  private readonly places = new Map<string, Item>()
  private readonly onSkipped: (item: Item, side: SkippedRecord['state'], reason: SkipReason) => void

  constructor(
    writer: BundleWriter,
    log: RecordLog,
    spool: string,
    items: Iterable<Item>,
    onSkipped: Contents['onSkipped'],
  ) {
    this.writer = writer
    this.log = log
    this.spool = spool
    this.onSkipped = onSkipped
    for (const item of items) {
      if (isFile(item.after) && item.as & CHANGES) this.places.set(item.after.identity, item)
    }
  }

  /** The state before with what somebody else made of it until the recording changed it. */
  stateBefore(item: Item): SeenState | undefined {
    const { before } = item
    const changed = before && this.log.saved.get(before.identity)?.changed
    if (changed && isFile(before)) this.onSkipped(item, 'before', 'changed-by-others')
    return changed && isFile(before) ? changed : before
  }

  /** Reads what was there before; undefined when that cannot be had, which is noted. Closed by the caller. */
  openBefore(item: Item, gitAlgorithm?: 'sha1' | 'sha256'): Content | undefined {
    const { before } = item
    if (!isFile(before)) return undefined
    const saved = this.log.saved.get(before.identity)
    if (saved) {
      if (saved.name === undefined) {
        this.onSkipped(item, 'before', isNoRoom({ code: 'UNKNOWN', errno: -saved.errno }) ? 'no-space' : 'not-saved')
        return undefined
      }
      return this.open(item, 'before', join(this.spool, saved.name), gitAlgorithm)
    }
    if (before.size === 0) return new Content(undefined, gitAlgorithm)
    const holder = this.holderOf(item, before)
    if (!holder) {
      this.onSkipped(item, 'before', item.as & CHANGES ? 'not-saved' : 'changed-by-others')
      return undefined
    }
    return this.open(item, 'before', rawToBytes(holder.path), gitAlgorithm)
  }

  /** Whether the content that was there before is where it was, or where it was moved to; what was empty needs no place. */
  isAtHand(before: SeenState, item: Item): boolean {
    return before.size === 0 || this.holderOf(item, before) !== undefined
  }

  openAfter(item: Item, gitAlgorithm?: 'sha1' | 'sha256'): Content | undefined {
    return this.open(item, 'after', rawToBytes(item.path), gitAlgorithm)
  }

  /** The fields of a state that tell where its content is. */
  store(item: Item, side: Side, content: Content): Pick<State, 'blob' | 'blob_parts' | 'sha256'> {
    const { sha256 } = content
    if (this.writer.isFull) {
      this.onSkipped(item, side, 'no-space')
      return { sha256 }
    }
    try {
      return this.writer.put(`${side}:${pathText(item.path).text}`, content)
    } catch (error) {
      if (isNoRoom(error)) this.onSkipped(item, side, 'no-space')
      else if (error instanceof Unstable) this.onSkipped(item, side, 'unstable')
      else throw error
      return { sha256 }
    }
  }

  /** The path at which a file is whose content the recording has not changed. */
  private holderOf(item: Item, before: SeenState): Item | undefined {
    const isStamped = this.log.stamped.has(before.identity)
    return [item, this.places.get(before.identity)].find(
      at =>
        at?.after?.identity === before.identity &&
        at.after.size === before.size &&
        (isStamped || at.after.mtimeNs === before.mtimeNs),
    )
  }

  private open(item: Item, side: Side, path: string | Buffer, gitAlgorithm?: 'sha1' | 'sha256'): Content | undefined {
    try {
      // What the command has shut behind it.
      return new Content(path, gitAlgorithm, (item.as & CHANGES) !== 0)
    } catch (error) {
      if (!(error instanceof Unstable) && errnoOf(error) === undefined) throw error
      this.onSkipped(item, side, error instanceof Unstable ? 'unstable' : 'unreadable')
      return undefined
    }
  }
}

export const CHANGES = SEEN.written | SEEN.deleted | SEEN.moved
