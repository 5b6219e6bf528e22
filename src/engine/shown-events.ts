/** What an event of the log was about, looked up where that is kept. */
import type { FileEvent } from '../model/trace.ts'
import type { LogRow, Position } from '../timeline/log-rows.ts'
import type { Context } from './context.ts'
import { cursorOf } from './event-cursor.ts'
import { Executions } from './executions.ts'
import type { LogEvent } from './results.ts'

/** An event as the log has it. */
export type Item = { position: Position; at: number } & ({ file: FileEvent } | { row: LogRow })

type Base = Pick<LogEvent, 'cursor' | 'at' | 'run'>

/** For one answer. */
export class ShownEvents {
  private readonly ctx: Context
  private readonly log: string
  private readonly executions: Executions
  private readonly tags: Map<string, string[]>

  constructor(ctx: Context) {
    this.ctx = ctx
    this.log = ctx.db.log.id
    this.executions = new Executions(ctx)
    this.tags = new Map()
    for (const [name, id] of ctx.db.tags()) this.tags.set(id, [...(this.tags.get(id) ?? []), name])
  }

  /** Undefined when nothing is known any more of what it was about. */
  event(item: Item): LogEvent | undefined {
    const cursor = cursorOf(this.log, item.position)
    if ('row' in item) return this.ofRow(item.row, { cursor, at: item.at, run: item.row.run })
    const { file } = item
    const run = file.run === '' ? undefined : file.run
    const execution = this.executions.of(file)
    return { cursor, at: item.at, run, kind: 'file', action: file.kind, event: file, execution }
  }

  private ofRow(row: LogRow, base: Base): LogEvent | undefined {
    const { db } = this.ctx
    const action = row.what as never
    switch (row.kind) {
      case 'snapshot':
        return this.ofSnapshot(row, base)
      case 'operation': {
        const operation = db.operation(row.ref!)
        return operation && { ...base, kind: 'operation', action, operation }
      }
      case 'run': {
        const run = db.runOf(row.run!)
        const lost = row.what === 'lost' ? Number(row.note) : undefined
        return run && { ...base, kind: 'run', action, of: row.what === 'started' ? unended(run) : run, lost }
      }
      case 'command': {
        const found = db.trace.execution(row.run!, Number(row.ref))
        const execution = found && row.what === 'started' ? unended(found) : found
        return execution && { ...base, kind: 'command', action, execution }
      }
    }
  }

  /** One that is gone for good was still taken. */
  private ofSnapshot({ ref, what, note }: LogRow, base: Base): LogEvent {
    const { db } = this.ctx
    const id = ref!
    const snapshot = db.snapshot(id)
    const isRemoved = what === 'removed'
    return {
      ...base,
      kind: 'snapshot',
      action: isRemoved ? 'removed' : 'taken',
      id,
      rule: isRemoved ? note : undefined,
      snapshot,
      type: snapshot?.type ?? (isRemoved ? undefined : (note as never)),
      tags: this.tags.get(id) ?? [],
      isHead: db.head === id,
      events: db.events.ofSnapshot(id),
    }
  }
}

/** What was not known yet when it began. */
const unended = <T extends { endedAt: number | undefined; exitCode: number | undefined; signal: string | undefined }>(
  what: T,
): T => ({ ...what, endedAt: undefined, exitCode: undefined, signal: undefined })
