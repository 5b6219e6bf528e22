/** Damage inside a SQLite file: found by whichever statement meets it, or by looking for it. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { isDamage, SavepointError } from '../errors/errors.ts'
import { asQuota } from './quota.ts'

/** SQLite's codes for a file that is broken, and for one that is no database. The low byte of extended ones. */
const damageCodes: ReadonlySet<number> = new Set([11, 26])
const PLAIN_CODE = 0xff
const LISTED = 3

/** Beyond it, statements are made anew: those of lists are as many as the lengths of lists. */
const MAX_KEPT = 200

/**
 * From here on every statement of `database` throws `store.damaged` with this hint where SQLite finds damage. A statement is
 * made once: to make it takes longer than most of them take.
 */
export function explainDamage(database: DatabaseSync, file: string, hint: string): void {
  const prepare = guarded(database.prepare.bind(database), file, hint)
  const kept = new Map<string, StatementSync>()
  // Node keeps a database as long as there is a statement of it: the two would hold each other for ever.
  const close = database.close.bind(database)
  database.close = () => {
    kept.clear()
    close()
  }
  database.exec = guarded(database.exec.bind(database), file, hint)
  database.prepare = sql => {
    const known = kept.get(sql)
    if (known) return known
    const statement = prepare(sql)
    for (const name of ['get', 'all', 'run'] as const) {
      const method = statement[name].bind(statement) as (...values: never[]) => unknown
      Object.assign(statement, { [name]: guarded(method, file, hint) })
    }
    Object.assign(statement, {
      *iterate(...values: Parameters<StatementSync['iterate']>) {
        try {
          // One of its own: somebody else may be in the midst of the same.
          yield* prepare(sql).iterate(...values)
        } catch (error) {
          throw asDamage(error, file, hint)
        }
      },
    })
    if (kept.size < MAX_KEPT) kept.set(sql, statement)
    return statement
  }
}

/** What is wrong inside the file, in SQLite's words; undefined when every page is sound. */
export function damageIn(database: DatabaseSync): string | undefined {
  try {
    const rows = database.prepare(`PRAGMA integrity_check(${LISTED})`).all() as { integrity_check: string }[]
    const found = rows.map(row => row.integrity_check.replaceAll('\n', ' '))
    return found.length === 1 && found[0] === 'ok' ? undefined : found.join('; ')
  } catch (error) {
    if (isDamage(error)) return (error.cause as Error).message
    throw error
  }
}

function guarded<A extends unknown[], R>(work: (...values: A) => R, file: string, hint: string): (...values: A) => R {
  return (...values) => {
    try {
      return work(...values)
    } catch (error) {
      throw asDamage(error, file, hint)
    }
  }
}

/** The error itself when it is about something else. */
export function asDamage(error: unknown, file: string, hint: string): unknown {
  const code = (error as { errcode?: number }).errcode ?? 0
  if (!damageCodes.has(code & PLAIN_CODE)) return asQuota(error, file)
  const { message } = error as Error
  return new SavepointError('store.damaged', `Cannot read ${file}: ${message}`, { hint, cause: error })
}
