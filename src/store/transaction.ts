/** One SQLite transaction: all of `work`, or nothing. Inside another one it becomes a part of that. */
import type { DatabaseSync } from 'node:sqlite'

export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  if (database.isTransaction) return work()
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
