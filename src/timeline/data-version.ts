/** Whether a database is still as it was: for what is worked out from its rows and kept as long as they stay. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'

export class DataVersion {
  private readonly database: DatabaseSync
  /** Counts what other connections commit. */
  private readonly theirs: StatementSync
  /** Counts rows that this one changes, also those that it takes back. */
  private readonly ours: StatementSync

  constructor(database: DatabaseSync) {
    this.database = database
    this.theirs = database.prepare('PRAGMA data_version')
    this.ours = database.prepare('SELECT total_changes() AS changes')
  }

  /** Equal to an earlier one: nothing was written in between. Undefined inside a transaction, which may be taken back. */
  now(): string | undefined {
    if (this.database.isTransaction) return undefined
    return `${Object.values(this.theirs.get()!)} ${Object.values(this.ours.get()!)}`
  }
}
