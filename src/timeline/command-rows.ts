/** Command lines stand in several tables. A purge hides words in all of them. */
import type { DatabaseSync } from 'node:sqlite'
import type { HideWords } from '../model/hide-words.ts'
import { rawFromBytes, rawFromText, rawToBytes, rawToText } from '../model/raw-path.ts'

/** Returns how many executions and runs had such words. Within a transaction of the caller's. */
export function hideCommands(database: DatabaseSync, hide: HideWords): number {
  const hideTexts = (texts: string[]) => hide(texts.map(rawFromText), '/')?.map(rawToText)
  const count = hideExecutions(database, hide) + hideRuns(database, hideTexts)
  const hideLine = (line: string) => hideTexts([line])?.[0]
  const hideSummary = (line: string) => hideInSummary(line, hideTexts)
  rewriteLines(database, 'snapshots', "command IS NOT NULL AND type <> 'safety'", 'command', hideLine)
  // Of a safety snapshot it is the operation that it was made for.
  rewriteLines(database, 'snapshots', "command IS NOT NULL AND type = 'safety'", 'command', hideSummary)
  rewriteLines(database, 'operations', "kind <> 'purge'", 'summary', hideSummary)
  return count
}

type HideTexts = (texts: string[]) => string[] | undefined

function hideExecutions(database: DatabaseSync, hide: HideWords): number {
  const update = database.prepare('UPDATE exec_events SET argv = ?, program = ?, cwd = ? WHERE run = ? AND id = ?')
  let count = 0
  // All at once: rows must not change under a cursor that reads them.
  const found = database.prepare('SELECT run, id, argv, program, cwd FROM exec_events')
  const changes: [Buffer, Buffer, Buffer, string, number][] = []
  for (const { run, id, argv, ...places } of found.iterate()) {
    const [program, cwd] = [places.program, places.cwd].map(bytes => rawFromBytes(bytes as Uint8Array))
    const words = rawFromBytes(argv as Uint8Array).split('\0')
    const hidden = [hide(words, cwd!), hide([program!], '/'), hide([cwd!], '/')]
    if (!hidden.some(each => each)) continue
    const [shown, [file], [place]] = [hidden[0] ?? words, hidden[1] ?? [program!], hidden[2] ?? [cwd!]]
    changes.push([rawToBytes(shown.join('\0')), rawToBytes(file!), rawToBytes(place!), run as string, id as number])
  }
  for (const change of changes) count += Number(update.run(...change).changes)
  return count
}

function hideRuns(database: DatabaseSync, hide: HideTexts): number {
  const update = database.prepare('UPDATE runs SET command = ?, cwd = ? WHERE id = ?')
  let count = 0
  for (const { id, command, cwd } of database.prepare('SELECT id, command, cwd FROM runs').all()) {
    const [words, place] = [hide(JSON.parse(command as string)), hide([cwd as string])]
    if (!words && !place) continue
    const shown = words ? JSON.stringify(words) : (command as string)
    count += Number(update.run(shown, place?.[0] ?? (cwd as string), id as string).changes)
  }
  return count
}

function rewriteLines(
  database: DatabaseSync,
  table: string,
  where: string,
  column: string,
  rewrite: (line: string) => string | undefined,
): void {
  const update = database.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`)
  for (const { id, line } of database.prepare(`SELECT id, ${column} AS line FROM ${table} WHERE ${where}`).all()) {
    const hidden = rewrite(line as string)
    if (hidden !== undefined) update.run(hidden, id as string)
  }
}

/** What it did, and then the command of a run, or paths. */
const summaries = [
  /^((?:undo |redo )*run_\w+: )(.*)()$/s,
  /^((?:undo |redo )*rollback to .*?, )(.*)()$/s,
  /^((?:undo |redo )*take back run_\w+(?: so far)?, )(.*)()$/s,
  /^((?:undo |redo )*revert )(.*)( to snap_.*)$/s,
]

/** Summaries of operations: where the command or the paths speak of what is hidden, all of that part does. */
function hideInSummary(line: string, hide: HideTexts): string | undefined {
  for (const pattern of summaries) {
    const [, before, what, after] = pattern.exec(line) ?? []
    const hidden = what === undefined ? undefined : hide([what])
    if (hidden) return `${before}${hidden[0]}${after}`
  }
  return undefined
}
