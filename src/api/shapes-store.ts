/** The shapes of what is answered about the store: what is kept of it, freed, and whole. */
import { z } from 'zod'
import { id, path } from './shapes.ts'

export const prune = z
  .object({
    dry_run: z.boolean(),
    decisions: z.array(z.object({ snapshot: id, keep: z.boolean(), pinned: z.boolean(), rule: z.string() })),
    left_to_store: z
      .array(z.object({ snapshot: id, rule: z.string() }))
      .describe('whose archive, or whose snapshot of the filesystem, goes: the store keeps them'),
    operation: id.nullable(),
  })
  .meta({ id: 'Prune' })

export const gc = z
  .object({
    forgotten_snapshots: z.int(),
    forgotten_traces: z.int(),
    removed_objects: z.int(),
    removed_kept: z.int().describe('snapshots of filesystems, and archives, that nothing needed any more'),
    still_kept: z.int().describe('more of them, which could not be removed now, or may be left'),
    freed_bytes: z.int(),
    store_bytes: z.int(),
  })
  .meta({ id: 'Collection' })

export const verify = z
  .object({
    ok: z.boolean(),
    objects: z.int(),
    bytes: z.int(),
    snapshots: z.int(),
    snapshots_here: z.int(),
    snapshots_deleted: z.int(),
    snapshots_unread: z.int(),
    problems: z.array(z.object({ what: z.string(), snapshots: z.array(id), paths: z.array(path) })),
    strays: z
      .array(z.object({ target: path, backend: z.string(), name: z.string(), where: z.string(), by_hand: z.string() }))
      .describe('what filesystems keep of directories whose history does not know it; by_hand deletes it'),
    repaired: z.array(z.string()),
  })
  .meta({ id: 'Verification' })
