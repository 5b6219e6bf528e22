/**
 * The rows of a run follow up to a second after `exec.jsonl` (trace-recorder.ts): where its supervisor was killed, the file has
 * what they lack. Which files were touched in that time nobody has written down.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import { rawFromText } from '../model/raw-path.ts'
import type { Execution } from '../model/trace.ts'
import type { ExecutionEnd, TraceBatch } from '../timeline/trace-rows.ts'
import type { Context } from './context.ts'

/** What is older has its rows. */
const MAX_BYTES = 16 * 1024 * 1024

type Told =
  | {
      type: 'exec'
      id: number
      time: string
      pid: number
      ppid: number
      parent: number
      depth: number
      replaces: number | null
      command: string
      argv: string[]
      truncated: boolean
      detached: boolean
      cwd: string
    }
  | { type: 'exit'; id: number; time: string; exit_code: number | null; signal: string | null }
  | { type: 'undone'; id: number }

/** All that is known of a killed run. */
export function executionsOfKilled(ctx: Context, run: string): Execution[] {
  const rows = ctx.db.trace.executions(run)
  const { executions, ends, undone } = untoldOf(ctx, run, rows)
  const endOf = new Map(ends.map(({ id, ...end }) => [id, end]))
  const known = rows.filter(({ id }) => !undone.includes(id)).map(row => ({ ...row, ...endOf.get(row.id) }))
  return [...known, ...executions].sort((a, b) => a.id - b.id)
}

/** Gives them their rows. May be called again. Where its end is still to be judged by how far the rows go, after that. */
export function completeTrace(ctx: Context, run: string): void {
  const batch = untoldOf(ctx, run, ctx.db.trace.executions(run))
  if (Object.values(batch).some(rows => rows.length > 0)) ctx.db.trace.add(run, batch)
}

function untoldOf(ctx: Context, run: string, rows: Execution[]): TraceBatch {
  const open = new Map(rows.map(row => [row.id, row.endedAt === undefined]))
  const fresh = new Map<number, Execution>()
  const ends: ExecutionEnd[] = []
  const undone: number[] = []
  const end = (ended: ExecutionEnd) => {
    const execution = fresh.get(ended.id)
    if (execution) Object.assign(execution, ended)
    else if (open.get(ended.id)) ends.push(ended)
    open.set(ended.id, false)
  }
  for (const told of linesOf(ctx, run)) {
    if (told.type === 'exec') {
      const endedAt = Date.parse(told.time)
      if (told.replaces !== null) end({ id: told.replaces, endedAt, exitCode: undefined, signal: undefined })
      if (!open.has(told.id)) fresh.set(told.id, executionOf(run, told))
    } else if (told.type === 'exit') {
      const { id, time, exit_code, signal } = told
      end({ id, endedAt: Date.parse(time), exitCode: exit_code ?? undefined, signal: signal ?? undefined })
    } else if (!fresh.delete(told.id) && open.has(told.id)) undone.push(told.id)
  }
  return { executions: [...fresh.values()], ends, undone, notes: [], files: [], unmoved: [] }
}

function executionOf(run: string, told: Told & { type: 'exec' }): Execution {
  const { id, time, pid, ppid, parent, depth, replaces, command, argv, truncated, detached, cwd } = told
  return {
    ...{ run, id, pid, ppid, parent, depth, truncated },
    at: Date.parse(time),
    replaces: replaces ?? undefined,
    program: rawFromText(command),
    argv: argv.map(rawFromText),
    cwd: rawFromText(cwd),
    endedAt: undefined,
    exitCode: undefined,
    signal: undefined,
    note: detached ? 'detached' : undefined,
  }
}

/** Without one that was cut off, at either end. */
function linesOf(ctx: Context, run: string): Told[] {
  const { text, isWhole } = tailOf(join(ctx.timelineDir, 'runs', run, 'exec.jsonl'))
  const lines = text.split('\n').slice(isWhole ? 0 : 1, -1)
  return lines.flatMap(line => {
    try {
      return JSON.parse(line) as Told
    } catch {
      // After a power cut it may be zeros.
      return []
    }
  })
}

function tailOf(file: string): { text: string; isWhole: boolean } {
  let fd: number | undefined
  try {
    fd = openSync(file, 'r')
    const { size } = fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, MAX_BYTES))
    const read = readSync(fd, bytes, 0, bytes.length, size - bytes.length)
    return { text: bytes.toString('utf8', 0, read), isWhole: size <= MAX_BYTES }
  } catch (error) {
    if (!errnoOf(error)) throw error
    return { text: '', isWhole: true }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
