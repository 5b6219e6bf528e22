/**
 * SQLite's files of one database belong together: half of them as before, and half as somebody else has left them, is a database that is
 * malformed. So where one of them stays, the others do.
 */
import type { Raw } from '../../model/raw-path.ts'
import type { RestorePlan } from './restore-plan.ts'

export function wholeDatabases(plan: RestorePlan): RestorePlan {
  const left = new Map(plan.leftAlone.map(each => [databaseOf(each.path), each]))
  const staying = plan.actions.flatMap(({ path }) => {
    const why = left.get(databaseOf(path))?.why
    return why === undefined ? [] : [{ path, why }]
  })
  if (staying.length === 0) return plan
  const stays = new Set(staying.map(({ path }) => path))
  const actions = plan.actions.filter(({ path }) => !stays.has(path))
  return { ...plan, actions, leftAlone: [...plan.leftAlone, ...staying] }
}

const databaseOf = (path: Raw): Raw => path.replace(/-(wal|shm|journal)$/, '')
