/** The intention of a restore, on disk before its first write and removed after its last. */
import { existsSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { idToHex, randomHex } from '../model/id.ts'
import type { OperationKind, Snapshot } from '../model/snapshot.ts'
import { syncDirectory, writeDurably } from '../store/durable.ts'
import type { Span } from '../targets/dir/others-paths.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import type { Context } from './context.ts'
import type { RestoreRequest } from './restore.ts'

export interface Journal {
  token: string
  /** Name of the stage directory in the target (hex-safe ASCII). */
  stage: string
  startedAt: number
  /** Root trees in hex: what shall be, and (undo) what the operation had left behind. */
  wanted: string
  base: string | undefined
  /** What others did meanwhile: root trees in hex, and which paths, if that is known (see Span). */
  others: (Omit<Span, 'before' | 'after'> & { before: string; after: string })[] | undefined
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
  headIfSame?: string | undefined
  detail: Record<string, unknown>
}

export function makeJournal(
  ctx: Context,
  request: RestoreRequest,
  safety: Snapshot,
  headBefore: string | undefined,
): Journal {
  const token = randomHex(8)
  return {
    token,
    stage: `${STAGE_PREFIX}${token}`,
    startedAt: ctx.now(),
    wanted: idToHex(request.wanted),
    base: request.base === undefined ? undefined : idToHex(request.base),
    others: request.others?.map(({ before, after, ...span }) => ({
      before: idToHex(before),
      after: idToHex(after),
      ...span,
    })),
    scope: request.scope === undefined ? undefined : [...request.scope],
    withoutGit: request.withoutGit ?? false,
    safety: safety.id,
    safetyRoot: idToHex(safety.root),
    kind: request.kind,
    summary: request.summary,
    snapshot: request.snapshot?.id,
    headBefore,
    headAfter: request.headAfter,
    headIfSame: request.headIfSame,
    detail: { ...request.detail, is_step: request.isStep ?? false, remade: request.remade ?? false },
  }
}

const fileOf = (timelineDir: string) => join(timelineDir, 'restore.json')

export const writeJournal = (timelineDir: string, journal: Journal): void =>
  writeDurably(fileOf(timelineDir), `${JSON.stringify(journal)}\n`)

export const hasJournal = (timelineDir: string): boolean => existsSync(fileOf(timelineDir))

export function readJournal(timelineDir: string): Journal | undefined {
  if (!hasJournal(timelineDir)) return undefined
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
