/** Where the tracer puts files that a run is about to destroy (native/helper/spool.h). */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../model/entry.ts'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { Ingest } from '../targets/dir/ingest.ts'
import type { ReadResult } from '../targets/dir/ingest-read.ts'
import type { Context } from './context.ts'

export type Spooled = Pick<Entry, 'size' | 'content' | 'sparse' | 'xattrs'>

export const spoolOf = (ctx: Context, run: string): string => join(ctx.timelineDir, 'runs', run, 'kept')

export const spoolLog = (spool: string): string => join(spool, 'log')

/** A place for the files that a run destroys. */
export function openSpool(ctx: Context, run: string): string {
  const spool = spoolOf(ctx, run)
  mkdirSync(spool, { recursive: true, mode: 0o700 })
  writeFileSync(join(spool, 'target'), ctx.targetPath, { mode: 0o600 })
  return spool
}

/** Where the target was when the run began: what is kept is told by paths below that. */
export const spoolTarget = (spool: string): Raw => rawFromBytes(readFileSync(join(spool, 'target')))

/** The run is over, and what was kept is in its snapshots. */
export const closeSpool = (ctx: Context, run: string): void =>
  rmSync(spoolOf(ctx, run), { recursive: true, force: true })

/** Puts files of it into the store; what cannot be read is not among the answers. */
export async function storeSpooled(
  ctx: Context,
  writer: StoreWriter,
  spool: string,
  files: Iterable<{ name: string; size: number }>,
): Promise<Map<string, Spooled>> {
  return withDir(Buffer.from(spool), async root => {
    const reader = new Ingest(ctx.store, writer, root, undefined, ctx.signal)
    const stored = new Map<string, Spooled>()
    try {
      for (const { name, size } of files) {
        // A result is only lent.
        const done = (result: ReadResult) => {
          if (result.errno !== 0 || result.unknown) return
          const { content, sparse, xattrs } = result
          stored.set(name, { size: result.size, content, sparse, xattrs: xattrs && Buffer.from(xattrs) })
        }
        reader.submit({ path: name, size, isCounted: true, done })
        await reader.room()
      }
      await reader.drain()
    } finally {
      await reader.close()
    }
    return stored
  })
}
