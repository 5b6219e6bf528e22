/**
 * The spool of a run that goes on: what comes in is counted, and of files that are written again and again the versions that no
 * snapshot would get go at once. Between two snapshots the disk would else hold all of them.
 */
import { lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, isDamage } from '../errors/errors.ts'
import { isWithin } from '../model/raw-path.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { type KeptFile, readKeptLog } from '../tracers/kept-log.ts'
import type { KeptEvent, SafeEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { chooseVersions } from './kept-choice.ts'
import { contentOfEntry, contentOfKept } from './kept-content.ts'
import { pinHolding, pinVersion } from './pin-version.ts'
import { readAncestor } from './shown-snapshot.ts'
import { spoolLog, spoolOf, spoolTarget } from './spool.ts'
import { UnkeptFiles } from './unkept-files.ts'

/** So many files that are destroyed one by one are better captured at once. */
const MANY_FILES = 1000
/** When so much has come in, it is worth a look. */
const MANY_BYTES = 32 * 1024 * 1024

export const sizeOf = (file: string): number | undefined => lstatSync(file, { throwIfNoEntry: false })?.size

/** What is in a spool, oldest first. */
export const spooled = (spool: string): KeptFile[] =>
  readKeptLog(spoolLog(spool)).kept.filter(({ name }) => sizeOf(join(spool, name)) !== undefined)

export class KeptSpool {
  private readonly ctx: Context
  private readonly run: string
  private files = 0
  private bytes = 0
  private isDue = false
  /** Of what has been read and is still there, by the names. */
  private contents = new Map<string, string | undefined>()

  private readonly unkept: UnkeptFiles

  constructor(ctx: Context, run: string) {
    this.ctx = ctx
    this.run = run
    this.unkept = new UnkeptFiles(ctx)
  }

  /** One more is there. Says what is to be done about it. */
  note({ name, path }: KeptEvent): 'capture' | 'trim' | undefined {
    if (name === undefined) {
      this.unkept.add(path)
      return undefined
    }
    this.bytes += sizeOf(join(spoolOf(this.ctx, this.run), name)) ?? 0
    if (++this.files % MANY_FILES === 0) return 'capture'
    if (this.bytes < MANY_BYTES || this.isDue) return undefined
    this.isDue = true
    return 'trim'
  }

  sayUnkept(): Promise<void> {
    return this.unkept.say()
  }

  pin(event: SafeEvent): void {
    pinVersion(this.ctx, this.run, event)
  }

  /** Not while a snapshot takes up what is there. Should it fail, nothing is lost. */
  async trim(): Promise<void> {
    this.isDue = false
    this.bytes = 0
    try {
      await this.removeSurplus()
    } catch (error) {
      if (!errnoOf(error) && !isDamage(error)) throw error
    }
  }

  private async removeSurplus(): Promise<void> {
    const { store, db } = this.ctx
    const spool = spoolOf(this.ctx, this.run)
    const target = spoolTarget(spool)
    const head = readAncestor(this.ctx, db.head)
    if (!head) return
    const tree = rootTreeOf(store, head.root)
    const files = spooled(spool)
      .filter(({ path }) => isWithin(path, target))
      // Whose it is may not be in the trace yet: until then it counts as somebody else's.
      .map(file => ({ ...file, path: file.path.slice(target.length + 1), isOthers: file.whose !== 'own' }))
    pinHolding(this.ctx, head, files)
    const chosen = await chooseVersions(
      files,
      file => this.contentOf(spool, file),
      path => contentOfEntry(entryAt(store, tree, path)),
    )
    // One file may have been destroyed under several names.
    const names = new Set(chosen.map(({ name }) => name))
    for (const { name } of files) if (!names.has(name)) rmSync(join(spool, name), { force: true })
    this.contents = new Map([...this.contents].filter(([name]) => names.has(name)))
  }

  private async contentOf(spool: string, file: KeptFile): Promise<string | undefined> {
    const content = this.contents.get(file.name) ?? (await contentOfKept(spool, file))
    this.contents.set(file.name, content)
    return content
  }
}
