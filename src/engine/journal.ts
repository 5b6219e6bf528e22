/** The intention of a restore, on disk before its first write and removed after its last. */
import { existsSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import type { OperationKind } from '../model/snapshot.ts'
import { syncDirectory, writeDurably } from '../store/durable.ts'

export interface Journal {
  token: string
  /** Name of the stage directory in the target (hex-safe ASCII). */
  stage: string
  startedAt: number
  /** Root trees in hex: what shall be, and (undo) what the operation had left behind. */
  wanted: string
  base: string | undefined
  scope: string[] | undefined
  withoutGit: boolean
  /** The state before. */
  safety: string
  safetyRoot: string
  kind: OperationKind
  summary: string
  snapshot: string | undefined
  headBefore: string | undefined
  headAfter: string | undefined
  detail: Record<string, unknown>
}

const fileOf = (timelineDir: string) => join(timelineDir, 'restore.json')

export const writeJournal = (timelineDir: string, journal: Journal): void =>
  writeDurably(fileOf(timelineDir), `${JSON.stringify(journal)}\n`)

export function readJournal(timelineDir: string): Journal | undefined {
  if (!existsSync(fileOf(timelineDir))) return undefined
  try {
    return JSON.parse(readFileSync(fileOf(timelineDir), 'utf8')) as Journal
  } catch (cause) {
    throw new SavepointError(
      'store.damaged',
      `Cannot read the journal of an interrupted restore: ${(cause as Error).message}`,
      {
        hint: `Look at ${fileOf(timelineDir)}; the state before the restore is the newest safety snapshot`,
        cause,
      },
    )
  }
}

export function removeJournal(timelineDir: string): void {
  if (!existsSync(fileOf(timelineDir))) return
  unlinkSync(fileOf(timelineDir))
  syncDirectory(timelineDir)
}
