/** Results as short text for a model: names first, no colours, nothing that repeats. */
import type { z } from 'zod'
import type * as shapes from '../api/shapes.ts'
import type * as traced from '../api/shapes-trace.ts'
import { changeLetters } from '../model/change-letters.ts'
import { formatAge, formatBytes, formatDuration, plural } from '../model/format.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import { shorten } from './page.ts'

export type SnapshotJson = z.output<typeof shapes.snapshot>
export type LogNodeJson = z.output<typeof shapes.logNode>
export type ChangeJson = z.output<typeof shapes.change>
export type ExecutionJson = z.output<typeof traced.execution>

const LINE_CHARS = 300

/** Where a filesystem keeps what was not captured. */
export const keptLines = (kept: z.output<typeof shapes.history>['kept']): string[] =>
  kept === null
    ? []
    : [`${kept.snapshot}, which ${kept.backend} keeps, has it as it was then, in ${kept.file ?? kept.where}`]

export const ageOf = (time: string | null): string => (time === null ? '' : formatAge(Date.now() - Date.parse(time)))

const join = (...parts: (string | undefined | false | null)[]) => parts.filter(Boolean).join('  ')

/** "+3 ~1 -2", without what is zero. */
const marks = ({ added, modified, deleted }: { added: number; modified: number; deleted: number }): string =>
  [added && `+${added}`, modified && `~${modified}`, deleted && `-${deleted}`].filter(Boolean).join(' ') || '='

/** `snap_abcd1234  manual  2 minutes ago  "label"  +3 ~1  (HEAD, tag: good)`. Of one that is not read yet nobody knows what it changed. */
export function snapshotLine(snapshot: SnapshotJson & { command?: string | null }): string {
  const names = [...(snapshot.head ? ['HEAD'] : []), ...snapshot.tags.map(tag => `tag: ${tag}`)]
  return join(
    snapshot.id,
    snapshot.type,
    ageOf(snapshot.created_at),
    snapshot.label !== null && JSON.stringify(snapshot.label),
    snapshot.read ? marks(snapshot.stats) : 'not read yet',
    snapshot.command && `$ ${shorten(snapshot.command, 80)}`,
    names.length > 0 && `(${names.join(', ')})`,
    snapshot.partial && `PARTIAL: ${plural('path', snapshot.stats.skipped)} not captured`,
  )
}

/** `M src/a.ts (12 B -> 15 B)`. */
export function changeLine({ kind, path, from, size_before, size_after }: SmallChange): string {
  const sizes = [size_before, size_after].filter(size => size !== null).map(formatBytes)
  const size = sizes.length === 0 ? '' : ` (${[...new Set(sizes)].join(' -> ')})`
  return `${changeLetters[kind]} ${from === null ? '' : `${from} -> `}${path}${size}`
}

export interface SmallChange {
  kind: ChangeJson['kind']
  path: string
  from: string | null
  size_before: number | null
  size_after: number | null
}

export const smallChange = ({ kind, path, from, before, after }: ChangeJson): SmallChange => ({
  kind,
  path,
  from,
  size_before: before?.size ?? null,
  size_after: after?.size ?? null,
})

/** The command line as a shell would read it. */
export const commandLine = ({ argv, command }: Pick<ExecutionJson, 'argv' | 'command'>): string =>
  shorten(quoteCommand(argv.length > 0 ? argv : [command]), LINE_CHARS)

/** "exit 0, 12 ms", "killed by SIGTERM", "still running". */
export function endOf({ exit_code, signal, ended_at, duration_ms, note }: ExecutionJson): string {
  const how = signal ? `killed by ${signal}` : exit_code !== null ? `exit ${exit_code}` : undefined
  const took = duration_ms === null ? undefined : formatDuration(duration_ms)
  const parts = [how ?? (ended_at === null ? 'not ended' : 'ended'), took, note]
  return parts.filter(Boolean).join(', ')
}
