/**
 * One SQLite transaction: all of `work`, or nothing. Inside another one it becomes a part of that. A deferred one waits for
 * nobody: it is for work that only reads, and sees one moment of the database from its first look on.
 */
import type { DatabaseSync } from 'node:sqlite'

export function inTransaction<T>(
  database: DatabaseSync,
  work: () => T,
  kind: 'IMMEDIATE' | 'DEFERRED' = 'IMMEDIATE',
): T {
  if (database.isTransaction) return work()
  database.exec(`BEGIN ${kind}`)
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
