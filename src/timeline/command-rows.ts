/** Command lines stand in several tables. A purge hides words in all of them. */
import type { DatabaseSync } from 'node:sqlite'
import type { HideWords } from '../model/hide-words.ts'
import { rawFromBytes, rawFromText, rawToBytes, rawToText } from '../model/raw-path.ts'

/** Returns how many executions and runs had such words. Within a transaction of the caller's. */
export function hideCommands(database: DatabaseSync, hide: HideWords): number {
  const hideTexts = (texts: string[]) => hide(texts.map(rawFromText), '/')?.map(rawToText)
  const count = hideExecutions(database, hide) + hideRuns(database, hideTexts)
  hideLines(database, 'snapshots', "command IS NOT NULL AND type <> 'safety'", 'command', hideTexts)
  hideLines(database, 'operations', "kind = 'run'", 'summary', hideTexts)
  return count
}

type HideTexts = (texts: string[]) => string[] | undefined

function hideExecutions(database: DatabaseSync, hide: HideWords): number {
  const update = database.prepare('UPDATE exec_events SET argv = ? WHERE run = ? AND id = ?')
  let count = 0
  // All at once: rows must not change under a cursor that reads them.
  const found = database.prepare('SELECT run, id, argv, cwd FROM exec_events')
  const changes: [Buffer, string, number][] = []
  for (const { run, id, argv, cwd } of found.iterate()) {
    const words = rawFromBytes(argv as Uint8Array).split('\0')
    const hidden = hide(words, rawFromBytes(cwd as Uint8Array))
    if (hidden) changes.push([rawToBytes(hidden.join('\0')), run as string, id as number])
  }
  for (const change of changes) count += Number(update.run(...change).changes)
  return count
}

function hideRuns(database: DatabaseSync, hide: HideTexts): number {
  const update = database.prepare('UPDATE runs SET command = ? WHERE id = ?')
  let count = 0
  for (const { id, command } of database.prepare('SELECT id, command FROM runs').all()) {
    const hidden = hide(JSON.parse(command as string))
    if (hidden) count += Number(update.run(JSON.stringify(hidden), id as string).changes)
  }
  return count
}

/** Lines that are made of a command: where it speaks of what is hidden, the whole line does. */
function hideLines(database: DatabaseSync, table: string, where: string, column: string, hide: HideTexts): void {
  const update = database.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`)
  for (const { id, line } of database.prepare(`SELECT id, ${column} AS line FROM ${table} WHERE ${where}`).all()) {
    const [, run = '', command] = /^(run_\w+: )?(.*)$/s.exec(line as string)!
    const hidden = hide([command!])
    if (hidden) update.run(`${run}${hidden[0]}`, id as string)
  }
}
