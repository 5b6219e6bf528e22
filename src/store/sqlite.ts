/**
 * node:sqlite, asked for at run time: an import of what an older Node does not have would end in an error of the loader
 * that says nothing about versions. Everything that uses a database comes through here, so this is also where the
 * version is checked.
 */
import type { DatabaseSync as Database } from 'node:sqlite'
import { SavepointError } from '../errors/errors.ts'

const OLDEST = [22, 18] as const

function loadSqlite(): typeof import('node:sqlite') {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
  const sqlite = isOld ? undefined : process.getBuiltinModule('node:sqlite')
  if (sqlite) return sqlite
  throw new SavepointError(
    'unsupported',
    `Cannot load Savepoint in Node ${process.versions.node}: it needs Node ${OLDEST.join('.')} or newer`,
    { hint: 'Use a newer Node; the command `savepoint` brings one of its own' },
  )
}

export const { DatabaseSync } = loadSqlite()
export type DatabaseSync = Database
