/** What belongs to Savepoint itself and is never captured: its home, and the stage of a restore. */
import type { Raw } from '../../model/raw-path.ts'
import type { DirNode } from './dir-node.ts'
import type { PassOptions } from './pass.ts'
import { STAGE_PREFIX } from './restore-apply.ts'
import { recordIno } from './walk-record.ts'

export function isOurs(options: PassOptions, node: DirNode, records: Buffer, at: number, name: Raw): boolean {
  if (recordIno(records, at) === options.homeIno) return true
  // Only a recovery captures the stage, because it may hold what was displaced.
  return node.path === '' && name.startsWith(STAGE_PREFIX) && !options.includeStage
}
