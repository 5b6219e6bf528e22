/** `tag`: names for snapshots. A tagged snapshot is never dropped by retention. */
import { SavepointError } from '../errors/errors.ts'
import type { Operation } from '../model/snapshot.ts'
import { nearest } from '../model/suggest.ts'
import { requireHead, resolveSnapshot } from '../timeline/resolve-ref.ts'
import { type Context, requireWritable } from './context.ts'
import { undoCommand } from './live-runs.ts'
import { checkTag } from './names.ts'
import { newOperation } from './new-operation.ts'

/** Names a snapshot (HEAD by default). A tag that exists moves; where it is there already, nothing happens: undefined. */
export function setTag(ctx: Context, name: string, ref: string | undefined): Operation | undefined {
  checkTag(name)
  const snapshot = ref === undefined ? requireHead(ctx.db) : resolveSnapshot(ctx.db, ref)
  if (snapshot.deletedAt !== undefined) {
    throw new SavepointError('snapshot.unknown', `Cannot tag ${snapshot.id}: it is deleted`, {
      hint: `${undoCommand(ctx)} brings it back`,
    })
  }
  const before = ctx.db.tags().get(name)
  if (before === snapshot.id) return undefined
  return record(ctx, name, before, snapshot.id, `tag ${name} on ${snapshot.id}`)
}

export function deleteTag(ctx: Context, name: string): Operation {
  const before = ctx.db.tags().get(name)
  if (before === undefined) {
    const suggestion = nearest(name, [...ctx.db.tags().keys()])
    throw new SavepointError('tag.unknown', `Cannot delete tag "${name}": there is none`, {
      hint: suggestion ? `Did you mean ${suggestion}?` : '`savepoint tag` lists the tags',
    })
  }
  return record(ctx, name, before, undefined, `delete tag ${name}`)
}

function record(
  ctx: Context,
  name: string,
  before: string | undefined,
  after: string | undefined,
  summary: string,
): Operation {
  requireWritable(ctx)
  return ctx.db.transaction(() => {
    ctx.db.setTag(name, after, ctx.now())
    return ctx.db.addOperation(
      newOperation(ctx, 'tag', summary, { name, before: before ?? null, after: after ?? null }),
    )
  })
}
